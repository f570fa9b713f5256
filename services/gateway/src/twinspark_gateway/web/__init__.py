"""HTTP mechanics below the endpoints: bodies, keys, event streams, disconnects."""
