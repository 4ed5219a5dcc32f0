"""Read and write files, one module per format."""
