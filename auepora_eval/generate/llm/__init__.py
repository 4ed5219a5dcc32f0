"""Questions that a language model asks."""
