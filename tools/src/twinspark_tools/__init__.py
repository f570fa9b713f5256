"""Programs for people and CI: the launcher behind make run, the tiny checkpoint, the benchmark client."""
