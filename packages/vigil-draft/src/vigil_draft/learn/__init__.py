"""The draft as a torch module, and its training."""
