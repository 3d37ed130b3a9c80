"""What can go wrong with us. A sick server is a verdict, never one of these (law 3).

VigilError
├── UsageError          the user asked for something that cannot be: exit 2, nothing was started
├── HostError           we could not look or act there
│   ├── UnreachableError    no connection, or it broke for good
│   └── NoPythonError       no python3 >= 3.9 at the other end
├── StateError          the state folder cannot be read or written
├── TraceError          a trace cannot be read
└── MeasureError        a server answers, but nothing can be measured or kept of it
"""


class VigilError(Exception):
    """Base of all errors; its text is one line for the user."""

    exit_code = 1


class UsageError(VigilError):
    """The request cannot be carried out as it was made."""

    exit_code = 2


class HostError(VigilError):
    """We could not look or act on a host."""


class UnreachableError(HostError):
    """The host could not be reached, or the connection broke for good."""

    exit_code = 10


class NoPythonError(HostError):
    """The host has no python3 >= 3.9 on its PATH."""


class StateError(VigilError):
    """The state folder could not be read or written."""


class TraceError(VigilError):
    """A trace could not be read."""

    exit_code = 2


class MeasureError(VigilError):
    """A server could not be measured, or the measurement not be kept."""
