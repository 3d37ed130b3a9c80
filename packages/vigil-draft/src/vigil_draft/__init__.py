"""EAGLE-3 draft models: inspect, convert, prepare, extract, train, evaluate, verify."""

__version__ = "0.1.0"
