"""The pages: functions from a request to markup, one module per subject."""
