"""Small programs to copy from."""
