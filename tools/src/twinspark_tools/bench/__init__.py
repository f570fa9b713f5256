"""The client benchmark behind `make bench`: decode, prefill, streams together, a replay, a long prompt's company."""
