"""Looking at datasets: checks, descriptions, differences, conversion."""
