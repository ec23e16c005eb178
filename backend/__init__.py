"""Everything of tokendyno that works without a browser."""

import sys

if sys.platform == "win32":  # locks, process groups and signals are POSIX's
    sys.stderr.write("tokendyno: Windows is not supported. Use tokendyno in WSL 2, or on Linux.\n")
    raise SystemExit(2)
