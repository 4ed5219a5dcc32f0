"""`python -m auepora_eval` is the command `auepora`."""

from .cli.main import process

process()
