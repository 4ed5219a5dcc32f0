"""The commands `auepora labels ...`."""
