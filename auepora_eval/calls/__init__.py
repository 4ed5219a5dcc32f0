"""Asking something outside: policy, executors, HTTP, chat models, keys. Knows nothing of samples."""
