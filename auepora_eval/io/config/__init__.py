"""Configuration files: plan, project, experiment."""
