"""Messages about calls: offers of tools, calls, results, and the one sentence that reports each result."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.tool_values import Argument, Value
from twinspark_demo.documents.turn import Setting
from twinspark_demo.knowledge import FUNCTIONS, Function

Message = Mapping[str, Any]
Tools = tuple[Mapping[str, Any], ...]
Call = tuple[Function, Mapping[str, Argument]]

NO_TOOL = "I have no tool for that."

# Functions that are easily mistaken for each other: they share values, verbs or a subject.
_CLOSE = (
    {"get_weather", "get_time", "get_distance", "get_population"},
    {"set_alarm", "set_timer", "get_time"},
    {"search_files", "read_file", "create_note"},
    {"send_message", "create_note", "translate"},
    {"get_stock_price", "convert_money"},
    {"play_song", "turn_on", "set_timer"},
    {"book_table", "send_message", "set_alarm"},
)
_CLOSE_SHARE = 0.6

REPORTS: Mapping[str, str] = {
    "get_weather": "It is {sky} and {degrees} degrees in {city}.",
    "get_time": "It is {time} in {city}.",
    "get_stock_price": "{symbol} is at {price}.",
    "get_population": "{country} has {people} people.",
    "translate": "{asked_word} is {word} in {language}.",
    "send_message": "The message is {status}.",
    "set_alarm": "The alarm is {status}.",
    "set_timer": "The timer is {status}.",
    "play_song": "The song is {status}.",
    "convert_money": "{amount} {currency} is {value}.",
    "search_files": "I found {files}.",
    "read_file": "It says: {text}",
    "book_table": "The table is {status}.",
    "get_distance": "It is {km} km from {origin} to {target}.",
    "create_note": "The note is {status}.",
    "turn_on": "The {device} is {status}.",
}


def offer(rng: Random, needed: Sequence[Function]) -> Tools:
    """2 to 4 tools in random order, with all that are needed."""
    offered = [function for function in FUNCTIONS if function in needed]
    return _filled(rng, offered, needed)


def offer_without(rng: Random, function: Function | None) -> Tools:
    """2 to 4 tools in random order, none of which is the function; most often one is close to it."""
    return _filled(rng, [], [function] if function else [])


def _filled(rng: Random, offered: list[Function], asked: Sequence[Function]) -> Tools:
    """The offered tools and others, more likely those that are close to what is asked."""
    count = max(rng.randint(2, 4), len(offered))
    others = [function for function in FUNCTIONS if function not in asked]
    close = {name for function in asked for group in _CLOSE if function.name in group for name in group}
    rng.shuffle(others)
    if rng.random() < _CLOSE_SHARE:
        others.sort(key=lambda function: function.name not in close)
        others = [*others[:1], *rng.sample(others[1:], len(others) - 1)]
    filled = [*offered, *others[: count - len(offered)]]
    rng.shuffle(filled)
    return tuple(function.as_tool() for function in filled)


def held(setting: Setting, kind: str, messages: Iterable[Message], tools: Tools) -> Conversation:
    """The conversation of these messages with these tools, as the setting has it."""
    plain = setting.conversation(kind, ())
    return replace(plain, messages=(*plain.messages, *messages), tools=tools)


def user(text: str) -> Message:
    """What the user says."""
    return {"role": "user", "content": text}


def reply(content: str) -> Message:
    """A reply without thinking and calls."""
    return {"role": "assistant", "reasoning_content": "", "content": content}


def reply_with(calls: Iterable[Call]) -> Message:
    """A reply of calls alone, their ids call_1, call_2."""
    made = [
        {"id": f"call_{number}", "type": "function", "function": {"name": function.name, "arguments": dict(arguments)}}
        for number, (function, arguments) in enumerate(calls, start=1)
    ]
    return {"role": "assistant", "reasoning_content": "", "content": "", "tool_calls": made}


def tool_message(rng: Random, number: int, result: Mapping[str, Value]) -> Message:
    """The result of call `number` (1, 2) as JSON, in the spelling of one of many tools."""
    items = list(result.items())
    if rng.random() < 0.15:
        rng.shuffle(items)
    separators = (",", ":") if rng.random() < 0.2 else (", ", ": ")
    content = json.dumps(dict(items), separators=separators, ensure_ascii=False)
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": content}


def report(call: Call, result: Mapping[str, Value]) -> str:
    """The sentence about one result, the values as they stand in it; a list is joined with commas."""
    function, arguments = call
    shown = {key: ", ".join(value) if isinstance(value, list) else str(value) for key, value in result.items()}
    asked = {f"asked_{key}" if key in result else key: value for key, value in arguments.items()}
    return REPORTS[function.name].format(**asked, **shown)
