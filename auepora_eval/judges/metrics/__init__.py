"""The metrics that ask a judge, one subject per file."""
