"""Legacy su and sv vectors of early EXL3 files: one sign bit a channel instead of fp16 scales."""

import torch

_PLACES = torch.arange(16)


def unpack_signs(words: torch.Tensor) -> torch.Tensor:
    """int16 [n / 16] -> fp16 [n] of +-1: bit i (lowest first) of word j is channel 16 * j + i, 1 means -1."""
    bits = (words.to(torch.int64)[:, None] >> _PLACES) & 1
    return (1 - 2 * bits).to(torch.float16).flatten()


def pack_signs(signs: torch.Tensor) -> torch.Tensor:
    """fp16 [n] of +-1 -> int16 [n / 16]."""
    bits = (signs < 0).to(torch.int64).view(-1, 16)
    return (bits << _PLACES).sum(-1).to(torch.uint16).view(torch.int16)
