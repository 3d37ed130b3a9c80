"""What is known of the engines' flags where no engine is installed: tables by release, and meanings across engines.

The `.json` files are made from the releases by `bench/flag_tables.py`; the `.toml` files are written by hand.
"""
