"""Ways to call a system on many samples."""
