"""`python -m cuvil`: the command line."""

from cuvil.cli import main

raise SystemExit(main())
