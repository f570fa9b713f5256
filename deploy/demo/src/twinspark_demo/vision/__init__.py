"""The vision tower of the demo model: what it makes of one picture, from pixels to rows for the language model.

It knows no training and no engine: both use it.
"""

from twinspark_demo.vision.patches import Patches, cut_patches, pixel_values
from twinspark_demo.vision.shape import DEMO_VISION, VisionShape
from twinspark_demo.vision.tower import Tower, TowerInput

__all__ = ["DEMO_VISION", "Patches", "Tower", "TowerInput", "VisionShape", "cut_patches", "pixel_values"]
