"""The demo model: a small GLM-5.3-Flash, from its generated data to the checkpoint that `make run` serves."""
