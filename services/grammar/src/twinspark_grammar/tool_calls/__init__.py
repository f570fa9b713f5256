"""Tool calls in GLM's markup, as a structural tag whose markers are tokens."""
