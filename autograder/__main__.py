"""Makes `python -m autograder` run the command `autograder`."""

from autograder.cli.app import main

raise SystemExit(main())
