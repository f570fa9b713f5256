"""A DFlash2 drafter for the demo model: one pass over a block drafts seven tokens.

Config, tensor names and formulas are those of the published DFlash2 drafters (z-lab's, incoai's for GLM-5.3-Flash).
"""

from twinspark_demo.drafter.config import DEMO, DrafterConfig
from twinspark_demo.drafter.model import Drafter

__all__ = ["DEMO", "Drafter", "DrafterConfig"]
