"""The Messages API in Anthropic's shape: translated to a chat request, and from its reply."""
