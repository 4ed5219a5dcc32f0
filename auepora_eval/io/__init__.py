"""Files to nouns and back, one format a file."""
