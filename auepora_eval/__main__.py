"""`python -m auepora_eval` is the command `auepora`."""

from .cli.main import main

raise SystemExit(main())
