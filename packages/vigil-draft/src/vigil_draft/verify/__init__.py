"""Serve a draft and measure whether it keeps its promise."""
