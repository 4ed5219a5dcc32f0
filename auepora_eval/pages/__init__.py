"""Pages of runs: served to a browser on this machine only, or written to one file."""
