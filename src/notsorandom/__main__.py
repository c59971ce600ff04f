"""``python -m notsorandom``: the command line."""

from notsorandom.cli import main

raise SystemExit(main())
