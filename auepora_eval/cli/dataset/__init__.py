"""The commands `auepora dataset ...`."""
