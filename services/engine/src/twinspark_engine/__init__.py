"""The engine: ranks that run GLM-5.3-Flash in step behind one gRPC service."""
