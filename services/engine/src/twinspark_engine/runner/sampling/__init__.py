"""From rows of logits, of which each rank holds its slice of the vocabulary, to tokens and log probabilities.

Order: penalties, logit_bias and masks (`adjustments`), the cuts (`filters`), the keyed draw (`sampler`). Log
probabilities (`logprobs`) are those of the logits before all of it. What ranks tell each other is in `exchange`.
"""
