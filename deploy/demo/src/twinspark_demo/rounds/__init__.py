"""Measures on a CPU how many tokens a round a drafter's folder lets a served folder keep, on the evaluation's prompts.

Replies are greedy and the engine's own, run in this process; drafts follow the rule that an engine serves with.
"""
