"""Writes small checkpoint folders of the GLM-5.3-Flash architecture with random weights, for tests and benchmarks.

Everything in a folder follows from the shape and the seed: two runs write the same bytes.
"""

from twinspark_tools.tiny_checkpoint.folder import write_checkpoint
from twinspark_tools.tiny_checkpoint.shapes import SHAPES, Shape

__all__ = ["SHAPES", "Shape", "write_checkpoint"]
