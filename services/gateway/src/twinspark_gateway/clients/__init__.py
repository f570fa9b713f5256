"""The services that the gateway calls, one file for each."""
