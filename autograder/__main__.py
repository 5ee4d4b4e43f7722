"""`python -m autograder` is the command `autograder`."""

from autograder.cli import main

raise SystemExit(main())
