"""A run on the disk: `<id>.results.json` and `<id>.run.db`; the cache of replies; the folder of runs."""
