"""Looking at datasets: checks, coverage, differences, descriptions, conversion."""
