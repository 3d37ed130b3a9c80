"""`python -m vigil` is the command line."""

from .cli.app import main

main()
