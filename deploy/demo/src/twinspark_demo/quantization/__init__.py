"""EXL3 encoder: finds the trellis states, signs and scales of given expert matrices."""

from twinspark_demo.quantization.exl3_tensors import Exl3Tensors, collect
from twinspark_demo.quantization.matrix import dequantize, quantize_experts, quantize_matrix
from twinspark_demo.quantization.viterbi import encode_tiles

__all__ = ["Exl3Tensors", "collect", "dequantize", "encode_tiles", "quantize_experts", "quantize_matrix"]
