"""A/B experiments: assignment, tests, verdict, report."""
