"""The journal of a run: what is answered already, and whose run it is."""
