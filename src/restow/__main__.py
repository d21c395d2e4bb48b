"""`python -m restow` is the `restow` program."""

from restow.cli import main

main()
