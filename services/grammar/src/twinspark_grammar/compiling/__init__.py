"""Compiling: a front in the event loop, a host process, and a forked child for each grammar."""
