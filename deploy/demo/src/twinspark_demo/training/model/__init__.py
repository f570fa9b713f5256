"""The trainable demo model: packed rows in, losses out."""

from twinspark_demo.training.model.batch import ForwardOptions, Losses, Predictions, Tapped, TrainingBatch
from twinspark_demo.training.model.model import DemoModel

__all__ = ["DemoModel", "ForwardOptions", "Losses", "Predictions", "Tapped", "TrainingBatch"]
