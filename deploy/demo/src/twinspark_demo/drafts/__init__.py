"""Measures on a CPU how many tokens of fresh replies the MTP layer of a served folder drafts right.

Prompts are the evaluation's; the replies are those that are right, read in one forward each.
"""
