"""The one exception with which a checkpoint folder is refused, and the reasons that it can have."""

import enum


class CheckpointReason(enum.StrEnum):
    """Why a folder cannot be served; each message names the field, file or tensor and its value."""

    CONFIG_UNREADABLE = "CONFIG_UNREADABLE"
    CONFIG_UNSUPPORTED = "CONFIG_UNSUPPORTED"
    QUANTIZATION_UNSUPPORTED = "QUANTIZATION_UNSUPPORTED"
    SIZE_NOT_DIVISIBLE = "SIZE_NOT_DIVISIBLE"
    FILE_UNREADABLE = "FILE_UNREADABLE"
    TENSOR_MISSING = "TENSOR_MISSING"
    TENSOR_UNEXPECTED = "TENSOR_UNEXPECTED"
    TENSOR_SHAPE = "TENSOR_SHAPE"
    TENSOR_DTYPE = "TENSOR_DTYPE"
    TENSOR_VALUE = "TENSOR_VALUE"


class CheckpointError(Exception):
    """A checkpoint folder that this engine does not serve; retrying without changing the folder is useless."""

    def __init__(self, reason: CheckpointReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
