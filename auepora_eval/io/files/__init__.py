"""Writing files safely: all of a file or nothing, one file or several."""
