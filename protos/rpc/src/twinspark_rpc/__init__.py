"""The hand-written half of RPC: servers, channels, interceptors, errors, logging."""
