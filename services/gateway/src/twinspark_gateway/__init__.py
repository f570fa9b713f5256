"""The gateway: the OpenAI HTTP API in front of the gRPC services."""
