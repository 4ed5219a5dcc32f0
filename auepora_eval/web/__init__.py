"""`auepora view`: stored runs in a browser, served on this machine only."""
