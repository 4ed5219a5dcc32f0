"""Traces of other tools: OTLP, span dumps."""
