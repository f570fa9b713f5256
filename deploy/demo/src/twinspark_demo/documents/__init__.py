"""Training documents: words, the kinds of document, and the mixture of them."""
