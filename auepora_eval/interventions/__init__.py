"""Which documents the generator is shown: what to fix first, and how robust a system is."""
