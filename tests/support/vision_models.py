"""A tower and a batch on which a step of training takes a moment on a CPU."""

from twinspark_demo.training.vision.packing import BatchShape
from twinspark_demo.vision import VisionShape

SMALL_TOWER = VisionShape(
    depth=2, hidden_size=64, num_heads=2, intermediate_size=64, out_hidden_size=128, projection_intermediate_size=128
)
SMALL_BATCH = BatchShape(rows=10, row_tokens=96, sequences=8, sequence_rows=40, pictures=8)
