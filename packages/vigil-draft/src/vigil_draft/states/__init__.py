"""Hidden states of the target: in process, and as files."""
