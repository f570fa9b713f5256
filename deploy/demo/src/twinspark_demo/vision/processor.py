"""preprocessor_config.json: what the published processor needs to know, as patches.py and canvas.py do it."""

from typing import Any

from twinspark_demo.vision.canvas import LEAST_ROWS, MOST_ROWS
from twinspark_demo.vision.patches import MEAN, STANDARD_DEVIATION
from twinspark_demo.vision.shape import VisionShape

PROCESSOR_NAME = "preprocessor_config.json"
_BICUBIC = 3


def processor_json(shape: VisionShape) -> dict[str, Any]:
    """The content of the file."""
    return {
        "image_processor_type": "Glm5NextImageProcessor",
        "processor_class": "Glm5NextProcessor",
        "do_convert_rgb": True,
        "do_resize": True,
        "resample": _BICUBIC,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(MEAN),
        "image_std": list(STANDARD_DEVIATION),
        "patch_size": shape.patch_size,
        "temporal_patch_size": shape.temporal_patch_size,
        "merge_size": shape.spatial_merge_size,
        "patch_expand_factor": 1,
        "min_image_tokens": LEAST_ROWS,
        "max_image_tokens": MOST_ROWS,
    }
