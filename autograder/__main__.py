"""`python -m autograder` is the command `autograder`."""

from autograder.cli.app import main

raise SystemExit(main())
