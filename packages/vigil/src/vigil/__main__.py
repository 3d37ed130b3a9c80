"""`python -m vigil` is the command line."""

from vigil.cli.app import main

main()
