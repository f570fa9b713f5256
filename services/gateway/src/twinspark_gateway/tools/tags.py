"""The six tokens of a tool call's markup. Each is one token, so ordinary text that spells one is never markup."""

import enum


class ToolTag(enum.Enum):
    """A token of the markup; the value is its text."""

    CALL_OPEN = "<tool_call>"
    CALL_CLOSE = "</tool_call>"
    KEY_OPEN = "<arg_key>"
    KEY_CLOSE = "</arg_key>"
    VALUE_OPEN = "<arg_value>"
    VALUE_CLOSE = "</arg_value>"
