"""The gate of a build: rules, checks, verdict, reports."""
