"""What makes the generated pages: one module for each kind, each with a function that returns pages by path."""
