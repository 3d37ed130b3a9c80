"""`python -m vigil_draft`: the commands where no entry point is installed."""

import sys

from vigil.errors import VigilError
from vigil_draft.cli.app import app

if __name__ == "__main__":
    try:
        app(prog_name="vigil draft")
    except VigilError as error:
        sys.exit(f"vigil: {error}")
