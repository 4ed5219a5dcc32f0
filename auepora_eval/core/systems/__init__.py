"""What is evaluated: a system by its name, and how it is called on one sample."""
