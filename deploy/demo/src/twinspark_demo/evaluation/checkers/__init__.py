"""What counts as right: `is_right(expected, reply)` for each kind, pure functions that know no wording."""

from collections.abc import Callable, Mapping
from typing import Any

from twinspark_demo.evaluation.checkers import (
    copied_text,
    counted_numbers,
    hidden_code,
    json_records,
    last_number,
    no_call,
    one_word,
    program_text,
    remembered_detail,
    told_values,
    tool_calls,
)
from twinspark_demo.evaluation.reply import Reply

CHECKERS: Mapping[str, Callable[[Any, Reply], bool]] = {
    "arithmetic": last_number.is_right,
    "facts": one_word.is_right,
    "counting": counted_numbers.is_right,
    "copy": copied_text.is_right,
    "json": json_records.is_right,
    "rename": program_text.is_right,
    "needle_100": hidden_code.is_right,
    "needle_1000": hidden_code.is_right,
    "needle_8000": hidden_code.is_right,
    "follow_up": remembered_detail.is_right,
    "tool_one": tool_calls.is_right,
    "tool_two": tool_calls.is_right,
    "tool_result": told_values.is_right,
    "tool_none": no_call.is_right,
    "tool_loop": told_values.is_right,
    "tool_required": tool_calls.is_right,
    "tool_named": tool_calls.is_right,
    "tool_parallel": tool_calls.is_right,
    "json_schema": json_records.is_right,
}
