"""Decides what each step computes: admission, chunks of prompts, decode windows. No torch, no clock of its own."""
