"""quantization_config of config.json: which of three weight formats a folder uses, everything else refused by field."""

import enum
from collections.abc import Mapping

from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.config_fields import ConfigFields

EXL3_SCOPE = "glm53_routed_experts_only"
FP8_BLOCK = 128


class Quantization(enum.Enum):
    """How a checkpoint stores its weights."""

    PLAIN = "plain"
    BLOCK_FP8 = "block-fp8"
    EXL3_EXPERTS = "exl3-experts"


def read_quantization(config_json: Mapping[str, object]) -> Quantization:
    """The format that config.json declares; QUANTIZATION_UNSUPPORTED names the field that is not served."""
    value = config_json.get("quantization_config")
    if value is None:
        return Quantization.PLAIN
    if not isinstance(value, dict):
        raise CheckpointError(CheckpointReason.QUANTIZATION_UNSUPPORTED, "quantization_config is not an object")
    fields = ConfigFields(value, "quantization_config.", CheckpointReason.QUANTIZATION_UNSUPPORTED)
    method = fields.require("quant_method")
    if method == "fp8":
        fields.only("fmt", "e4m3")
        fields.only("weight_block_size", [FP8_BLOCK, FP8_BLOCK], required=True)
        return Quantization.BLOCK_FP8
    if method != "exl3":
        fields.refuse("quant_method", method, 'only "exl3" and "fp8" are supported')
    _check_exl3(fields)
    return Quantization.EXL3_EXPERTS


def _check_exl3(fields: ConfigFields) -> None:
    fields.only("scope", EXL3_SCOPE, required=True)
    fields.only("head_bits", 16)
    fields.only("non_routed_dtype_policy", "official_source_native")
    bits = fields.number("bits")
    if not 1 <= bits <= 8:
        fields.refuse("bits", bits, "1 to 8 is needed")
    codebook = fields.values.get("codebook", "mcg")
    if codebook not in ("3inst", "mcg", "mul1"):
        fields.refuse("codebook", codebook, "3inst, mcg or mul1 is needed")
