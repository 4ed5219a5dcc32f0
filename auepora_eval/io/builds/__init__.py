"""The files of a build: raw tasks, splits, manifest."""
