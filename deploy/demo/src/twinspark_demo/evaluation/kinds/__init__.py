"""The kinds of prompts, one module each: its wordings, and `make`, which draws one prompt."""
