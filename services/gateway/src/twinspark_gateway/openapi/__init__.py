"""The OpenAPI document of the HTTP API, written by hand because the request readers are."""
