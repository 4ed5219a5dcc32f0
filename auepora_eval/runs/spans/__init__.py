"""The spans of a run: recording, sending, importing."""
