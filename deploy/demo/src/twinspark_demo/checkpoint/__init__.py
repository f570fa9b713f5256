"""Files of the demo model: what a training run resumes from, and the folder that the engine serves."""

from twinspark_demo.checkpoint.export import export
from twinspark_demo.checkpoint.shards import Place, load_shards, save_shards

__all__ = ["Place", "export", "load_shards", "save_shards"]
