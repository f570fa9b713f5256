"""The kinds of attention and of MLP that a layer can have."""

import enum


class AttentionKind(enum.Enum):
    """What mixes positions in a layer."""

    KDA = "kda"
    DSA = "dsa"


class MlpKind(enum.Enum):
    """What follows the attention of a layer."""

    DENSE = "dense"
    MOE = "moe"
