"""Files of other tools: tables and lists of records, TREC, BEIR, and the documents of evaluation tools."""
