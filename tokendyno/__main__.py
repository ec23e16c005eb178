"""`python -m tokendyno` is `tokendyno`."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the user's folder: a random.py there would run in place of the real one

from tokendyno.backend.cli.main import main

sys.exit(main())
