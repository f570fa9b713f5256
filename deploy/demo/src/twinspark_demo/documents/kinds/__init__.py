"""One module a kind of document: `make(rng, budget) -> Conversation`, the budget in tokens of the whole document."""
