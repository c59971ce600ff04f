"""``python -m notsorandom.cli``: the command line."""

from notsorandom.cli import main

raise SystemExit(main())
