"""The three EXL3 codebooks: a 16-bit trellis state to its exact fp16 value.

The multipliers are fixed by the format; a checkpoint says by the presence of a marker tensor which codebook it uses.
"""

import enum
import functools

import torch

MCG_MULTIPLIER = 0xCBAC1FED
MUL1_MULTIPLIER = 0x83DCD12D
NUM_STATES = 1 << 16


class Codebook(enum.Enum):
    """Which table turns states into weights."""

    THREE_INST = "3inst"
    MCG = "mcg"
    MUL1 = "mul1"


def codebook_from_markers(mcg: int | None, mul1: int | None) -> Codebook:
    """The codebook of a tensor by its int32 markers (None: absent); ValueError names what contradicts the format."""
    if mcg is not None and mul1 is not None:
        raise ValueError("both markers, mcg and mul1, are present")
    if mcg is not None:
        return _checked(Codebook.MCG, mcg, MCG_MULTIPLIER)
    if mul1 is not None:
        return _checked(Codebook.MUL1, mul1, MUL1_MULTIPLIER)
    return Codebook.THREE_INST


def _checked(codebook: Codebook, marker: int, multiplier: int) -> Codebook:
    word = marker & 0xFFFFFFFF
    if word != multiplier:
        raise ValueError(f"the {codebook.value} marker is 0x{word:08X}, only 0x{multiplier:08X} is known")
    return codebook


@functools.cache
def codebook_table(codebook: Codebook) -> torch.Tensor:
    """fp16 [65536]: the value of every state. Shared: never write to it."""
    states = torch.arange(NUM_STATES, dtype=torch.int64)
    if codebook is Codebook.THREE_INST:
        return _sum_of_halves(states * 89226354 + 64248484)
    if codebook is Codebook.MCG:
        return _sum_of_halves(states * MCG_MULTIPLIER)
    return _sum_of_bytes(states * MUL1_MULTIPLIER)


def _sum_of_halves(product: torch.Tensor) -> torch.Tensor:
    """One fp16 add of the two halves of the masked low word of an int64 product [65536]."""
    word = ((product & 0x8FFF8FFF) ^ 0x3B603B60).to(torch.uint32)
    halves = word.view(torch.float16).view(-1, 2)
    return halves[:, 0] + halves[:, 1]


def _sum_of_bytes(product: torch.Tensor) -> torch.Tensor:
    """round_fp16(0x1EEE * sum of the four bytes - 3.453125); both steps before the rounding are exact in fp32."""
    total = sum(((product >> shift) & 0xFF for shift in (0, 8, 16, 24)), start=torch.zeros_like(product))
    return (total.float() * 0.00676727294921875 - 3.453125).to(torch.float16)
