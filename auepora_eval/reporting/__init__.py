"""Tables, plots and the texts of numbers."""
