"""Scores a running server through its HTTP API: own wordings, own words, own checkers.

Of the rest of this package it reads what the model knows (`knowledge`) and nothing else, so that a request which is
answered right was understood and not recognised.
"""
