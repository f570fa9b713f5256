"""GLM-5.3-Flash: its config, weights, state and forward. Knows no scheduler and no RPC."""
