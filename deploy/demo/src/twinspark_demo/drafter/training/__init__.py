"""Training of the drafter on a served folder; see __main__.py."""
