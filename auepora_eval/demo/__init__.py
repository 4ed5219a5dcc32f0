"""The bundled world of `auepora demo`: corpus, questions and systems."""
