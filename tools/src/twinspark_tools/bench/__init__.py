"""The client benchmark behind `make bench`: decode, prefill, concurrent streams, a replayed conversation, memory."""
