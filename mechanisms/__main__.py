"""`python -m mechanisms`."""

import sys

from mechanisms.cli.main import main

sys.exit(main(prog="python -m mechanisms"))
