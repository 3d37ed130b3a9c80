"""`vigil draft`: one file a command."""
