"""Turns the engine's token streams into the text, counts and log probabilities of a reply."""
