"""`python -m restow` is the `restow` program; spark-submit runs this file itself."""

import sys

if not __package__:
    sys.path.pop(0)  # the folder of this file would hide Python's own module html

from restow.cli import main

main()
