"""The Responses API of OpenAI: translated to a chat request, and from its reply."""
