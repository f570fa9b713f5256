"""Rows: how conversations become packed rows of tokens."""
