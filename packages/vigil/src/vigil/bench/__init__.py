"""Measures a server under load: a streaming client, steady states, intervals, and what two servers' difference amounts to."""
