"""The index of a stored run: its samples by score, slice and words, without reading the run."""
