"""Reading and writing JSON and YAML: text, records, documents."""
