"""The engines that Vigil knows: tables of data, and how a command line or a log line shows which one it is."""

from vigil.engines.address import Address, address, asks_speculation, served_model
from vigil.engines.describe import phase_table
from vigil.engines.kept import worth_keeping
from vigil.engines.registry import TABLES, detect, detect_text, engine_version, find, table

__all__ = [
    "TABLES",
    "Address",
    "address",
    "asks_speculation",
    "detect",
    "detect_text",
    "engine_version",
    "find",
    "phase_table",
    "served_model",
    "table",
    "worth_keeping",
]
