"""How a dataset comes to be good: built from raw records, generated, checked."""
