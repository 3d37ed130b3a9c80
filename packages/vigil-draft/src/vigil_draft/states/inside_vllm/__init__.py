"""What runs in vLLM's own processes: found by PYTHONPATH, never imported from here."""
