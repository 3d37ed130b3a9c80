"""What acceptance length a draft promises on text that it has not seen."""
