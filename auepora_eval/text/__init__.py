"""Text: tokens, stems, sentences, n-grams, phrases of refusal."""
