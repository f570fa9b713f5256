"""quantization_config: three formats are served, every other value is refused by field."""

import pytest

from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.weights.quantization import Quantization, read_quantization

FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
EXL3 = {"quant_method": "exl3", "bits": 4, "codebook": "mcg", "head_bits": 16, "scope": "glm53_routed_experts_only"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, Quantization.PLAIN),
        (FP8, Quantization.BLOCK_FP8),
        (FP8 | {"modules_to_not_convert": ["lm_head"]}, Quantization.BLOCK_FP8),
        (EXL3, Quantization.EXL3_EXPERTS),
        (EXL3 | {"bits": 3.5, "codebook": "mul1"}, Quantization.EXL3_EXPERTS),
        (EXL3 | {"serving_reader_qualified": False, "version": "0.0.43"}, Quantization.EXL3_EXPERTS),
    ],
)
def test_served_formats_are_recognised(value: object, expected: Quantization) -> None:
    assert read_quantization({"quantization_config": value}) is expected


def test_absent_entry_means_plain_weights() -> None:
    assert read_quantization({}) is Quantization.PLAIN


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"quant_method": "gptq"}, 'quantization_config.quant_method is "gptq"'),
        ({"quant_method": "modelopt"}, 'quantization_config.quant_method is "modelopt"'),
        ({}, "quantization_config.quant_method is missing"),
        ([4], "quantization_config is not an object"),
        (FP8 | {"weight_block_size": [64, 64]}, r"quantization_config.weight_block_size is \[64, 64\]"),
        ({"quant_method": "fp8"}, "quantization_config.weight_block_size is missing"),
        (FP8 | {"fmt": "e5m2"}, 'quantization_config.fmt is "e5m2"'),
        (EXL3 | {"scope": "everything"}, 'quantization_config.scope is "everything"'),
        ({"quant_method": "exl3", "bits": 4.05}, "quantization_config.scope is missing"),
        (EXL3 | {"head_bits": 6}, "quantization_config.head_bits is 6"),
        (EXL3 | {"bits": 9}, "quantization_config.bits is 9"),
        (EXL3 | {"codebook": "mcg2"}, 'quantization_config.codebook is "mcg2"'),
        (EXL3 | {"non_routed_dtype_policy": "q4"}, 'quantization_config.non_routed_dtype_policy is "q4"'),
    ],
)
def test_other_formats_are_refused_by_field(value: object, message: str) -> None:
    with pytest.raises(CheckpointError, match=message) as refusal:
        read_quantization({"quantization_config": value})
    assert refusal.value.reason is CheckpointReason.QUANTIZATION_UNSUPPORTED
