"""The files of a run's results."""
