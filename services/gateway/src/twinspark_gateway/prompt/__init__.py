"""Prompts: chat template, tokenizing, detokenizing, and the split of reasoning from answer."""
