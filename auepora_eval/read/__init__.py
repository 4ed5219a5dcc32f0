"""Records and objects to samples and outputs: the one place that knows the field names of others.

The package is below `core` and uses only its types (`core.types`): the runner, the files (`io`) and the
public API read with the same functions.
"""
