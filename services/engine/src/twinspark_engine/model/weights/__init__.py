"""Checkpoint folders: what their headers show, the plan of a load, and one rank's parameters.

Layouts: published BF16, published block FP8, EXL3 routed experts beside plain tensors, save_pretrained of Transformers.
"""

from twinspark_engine.model.weights.checkpoint_hash import checkpoint_hash
from twinspark_engine.model.weights.load import load_weights
from twinspark_engine.model.weights.plan import LoadPlan, build_plan
from twinspark_engine.model.weights.reader import Progress
from twinspark_engine.model.weights.special_ids import eos_token_ids, masked_token_ids

__all__ = ["LoadPlan", "Progress", "build_plan", "checkpoint_hash", "eos_token_ids", "load_weights", "masked_token_ids"]
