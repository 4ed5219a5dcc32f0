"""Benchmark files: JSON, Parquet, HDF5."""
