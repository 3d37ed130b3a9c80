"""Training data: prompts answered by the target, as token ids with a mask of what counts."""
