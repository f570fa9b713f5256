"""What the gateway adds between the engine's send and the client's read, and how many streamed tokens it carries."""
