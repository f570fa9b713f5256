"""The gates of exactness that a client can see: the program of `make gates`, against any running server by URL."""
