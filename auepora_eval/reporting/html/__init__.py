"""HTML components that the report, the web view and notebooks share."""
