"""`vigil` and `python -m vigil`: the command line."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; an impatient Ctrl-C while it is being imported is no reason for a traceback."""
    try:
        from vigil.cli.app import main as run  # noqa: PLC0415 - inside the guard
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
