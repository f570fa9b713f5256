"""constrained: a reply keeps to the form that was asked for, and is the same alone, among others and streamed.

Every form ends by itself within MAX_TOKENS whatever the weights say, unless the model spends them thinking.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator

from twinspark_tools.gates.outcome import Outcome, Verdict, failed, passed
from twinspark_tools.gates.replies import Comparison, Reply, ReplyParts
from twinspark_tools.gates.server import GREEDY, Server
from twinspark_tools.gates.together import gather_all

MAX_TOKENS = 160
COLOURS = {"enum": ["red", "green", "blue"]}
SCHEMA: Mapping[str, Any] = {"type": "array", "items": COLOURS, "minItems": 1, "maxItems": 2}
PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {"colour": COLOURS, "count": {"type": "integer", "minimum": 10, "maximum": 99}},
    "required": ["colour", "count"],
    "additionalProperties": False,
}
PATTERN = r"[a-f]{2,8}-[0-9]{1,3}"
CHOICES = ("a red stone", "a red river", "nothing")
TOOL = {"type": "function", "function": {"name": "paint", "parameters": PARAMETERS}}
QUESTIONS = ("What is 47 + 38?", "Name a colour.")
SAMPLINGS: Sequence[Mapping[str, Any]] = (GREEDY, {"temperature": 1, "seed": 21})


@dataclass(frozen=True, slots=True)
class Form:
    """Body fields that ask for it, and whether a message of the openai client keeps to it."""

    name: str
    fields: Mapping[str, Any]
    fits: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class FormAsk:
    """One chat request."""

    form: Form
    thinks: bool
    sampling: Mapping[str, Any]

    def body(self, model: str) -> dict[str, Any]:
        """What is sent."""
        question = QUESTIONS[not self.thinks]
        own = {"chat_template_kwargs": {"enable_thinking": self.thinks}, "return_token_ids": True}
        return {
            "model": model,
            "messages": [{"role": "user", "content": question}],
            "max_tokens": MAX_TOKENS,
            "extra_body": {**own, **self.form.fields, **self.sampling},
        }

    def __str__(self) -> str:
        return f"{self.form.name}, {'thinking' if self.thinks else 'without thinking'}, {dict(self.sampling)}"


async def run(server: Server) -> Outcome:
    """Every form with and without thinking, greedily and sampled: alone, then all at once, then streamed at once."""
    asks = [FormAsk(form, thinks, how) for form in build_forms() for thinks in (False, True) for how in SAMPLINGS]
    alone = []
    for ask in asks:
        reply, misfit = await _ask(server, ask)
        if misfit:
            return failed(f"{ask}: {misfit}")
        alone.append(reply)
    together = [reply for reply, _ in await gather_all(_ask(server, ask) for ask in asks)]
    streamed = await gather_all(_stream(server, ask) for ask in asks)
    compared = Comparison()
    for how, replies in (("at once", together), ("streamed at once", streamed)):
        for ask, expected, found in zip(asks, alone, replies, strict=True):
            compared.add(f"{ask}, {how}", expected, found)
    outcome = compared.outcome("equal")
    if outcome.verdict is not Verdict.PASSED:
        return outcome
    num_cut = sum(reply.finish_reason == "length" for reply in alone)
    cut = f"; {num_cut} spent all tokens on thinking" if num_cut else ""
    return passed(f"{len(asks)} replies keep to their forms and equal those at once and streamed{cut}")


def build_forms() -> list[Form]:
    """A schema, a pattern, a choice, and a call."""
    schema = {"type": "json_schema", "json_schema": {"name": "colours", "schema": SCHEMA, "strict": True}}
    named = {"type": "function", "function": {"name": "paint"}}
    return [
        Form("schema", {"response_format": schema}, lambda message: _is_valid(SCHEMA, message.content)),
        Form("regex", {"structured_outputs": {"regex": PATTERN}}, _matches),
        Form("choice", {"structured_outputs": {"choice": list(CHOICES)}}, lambda found: found.content in CHOICES),
        Form("named call", {"tools": [TOOL], "tool_choice": named}, _is_one_call),
    ]


async def _ask(server: Server, ask: FormAsk) -> tuple[Reply, str]:
    """The reply, and in what it does not keep to its form."""
    (choice,) = (await server.client.chat.completions.create(**ask.body(server.info.model))).choices
    parts = ReplyParts()
    parts.add(choice)
    reply = parts.build()
    if reply.finish_reason == "length":
        return reply, "" if ask.thinks else f"it goes on after {MAX_TOKENS} tokens"
    message = choice.message
    is_right = ask.form.fits(message)
    return reply, "" if is_right else f"the reply is not of this form: {message.content or message.tool_calls!r}"


async def _stream(server: Server, ask: FormAsk) -> Reply:
    parts = ReplyParts()
    stream: Any = await server.client.chat.completions.create(**ask.body(server.info.model), stream=True)
    async with stream:
        async for chunk in stream:
            for choice in chunk.choices:
                parts.add(choice)
    return parts.build()


def _is_valid(schema: Mapping[str, Any], text: str | None) -> bool:
    try:
        value = json.loads(text or "")
    except ValueError:
        return False
    is_valid: bool = Draft202012Validator(schema).is_valid(value)
    return is_valid


def _matches(message: Any) -> bool:
    return re.fullmatch(PATTERN, message.content or "") is not None


def _is_one_call(message: Any) -> bool:
    calls = message.tool_calls or []
    if len(calls) != 1 or message.content:
        return False
    is_named: bool = calls[0].function.name == "paint"
    return is_named and _is_valid(PARAMETERS, calls[0].function.arguments)
