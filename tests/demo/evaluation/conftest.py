"""A real gateway over a fake engine that answers the evaluation's prompts: perfectly, or with planted mistakes."""

import json
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from fakes.engine import FakeEngine, serve_engine
from fakes.engine_model import FakeModel
from support.constrained import run_grammar_service
from support.scripts import encode
from support.served_gateway import serve_gateway
from support.tiny_tokenizer import build_tokenizer, write_folder
from twinspark.engine.v1 import engine_pb2 as pb
from twinspark_demo.drafts.template import load_template, render
from twinspark_demo.evaluation.drawing import draw_prompts, kinds
from twinspark_demo.evaluation.filler import SAMPLE_SENTENCES, sample_text
from twinspark_demo.evaluation.prompt import Prompt
from twinspark_gateway.settings import Settings

USER = 277
COUNT = 4
Break = Callable[[str, str], str]
"""Makes another reply of (prompt, right reply)."""
StartServer = Callable[..., Awaitable[str]]


@pytest.fixture(scope="session")
def template_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small tokenizer and the template of the demo model."""
    folder = write_folder(tmp_path_factory.mktemp("models") / "demo")
    package = resources.files("twinspark_tools.tiny_checkpoint")
    with resources.as_file(package.joinpath("chat_template.jinja")) as source:
        shutil.copyfile(source, folder / "chat_template.jinja")
    return folder


class PerfectModel:
    """Knows the right reply to each prompt that an evaluation of COUNT prompts a kind makes."""

    def __init__(self, folder: Path) -> None:
        self._template = load_template(folder)
        self._tokenizer = build_tokenizer()
        per_sentence = len(encode(sample_text())) / SAMPLE_SENTENCES
        self._whole: dict[str, str] = {}
        self._last_turns: dict[tuple[str, str], str] = {}
        self.requests: list[pb.GenerateRequest] = []
        self.texts: list[str] = []
        for kind in kinds():
            for prompt in draw_prompts(kind, COUNT, tokens_per_sentence=per_sentence):
                self._learn(prompt)

    def _learn(self, prompt: Prompt) -> None:
        if prompt.later_turns:
            key = (prompt.messages[0]["content"], prompt.later_turns[-1])
            self._last_turns[key] = f"</think>{prompt.expected}"
            return
        messages, tools = prompt.messages, rendered_tools(prompt)
        for step in prompt.tool_steps:
            parts = [call.as_message_part() for call in step.calls]
            self._whole[render(self._template, messages, tools)] = spell_reply("", parts)
            said = {"role": "assistant", "content": "", "reasoning_content": "", "tool_calls": parts}
            messages = (*messages, said, *({"role": "tool", "content": result} for result in step.results))
        self._whole[render(self._template, messages, tools)] = right_reply(prompt)

    def reply_to(self, request: pb.GenerateRequest) -> str:
        """Text of the right reply, reasoning included."""
        text: str = self._tokenizer.decode(list(request.prompt_token_ids), skip_special_tokens=False)
        self.requests.append(request)
        self.texts.append(text)
        if text in self._whole:
            return self._whole[text]
        parts = re.split(r"<\|(?:user|assistant)\|>", text)
        return self._last_turns.get((parts[1], parts[-2]), "I think</think>ok")


def rendered_tools(prompt: Prompt) -> Sequence[Mapping[str, Any]]:
    """The tools that the model is shown: where one is named, no other."""
    choice = prompt.fields.get("tool_choice")
    if not isinstance(choice, dict):
        return prompt.tools
    return [tool for tool in prompt.tools if tool["function"]["name"] == choice["function"]["name"]]


def right_reply(prompt: Prompt) -> str:
    """The reply as the model would write it."""
    if prompt.kind == "arithmetic":
        return f"steps</think>{prompt.expected}"
    if prompt.kind == "tool_none":
        return f"</think>{prompt.expected or 'Nice to meet you.'}"
    if prompt.kind in ("tool_result", "tool_loop"):
        return f"</think>Here: {', '.join(map(str, prompt.expected))}."
    assert prompt.reply is not None
    return spell_reply(prompt.reply["content"], prompt.reply.get("tool_calls", ()))


def spell_reply(content: str, calls: Sequence[Mapping[str, Any]]) -> str:
    """A reply with its calls in the model's markup."""
    return f"</think>{content}" + "".join(
        f"<tool_call>{call['function']['name']}"
        + "".join(
            f"<arg_key>{key}</arg_key><arg_value>{value if isinstance(value, str) else json.dumps(value)}</arg_value>"
            for key, value in call["function"]["arguments"].items()
        )
        + "</tool_call>"
        for call in calls
    )


@pytest.fixture(scope="session")
def known(template_folder: Path) -> PerfectModel:
    """The model that knows everything."""
    return PerfectModel(template_folder)


@pytest.fixture(scope="session")
def grammar_address(template_folder: Path) -> Iterator[str]:
    """Address of a grammar service with the same tokenizer."""
    with run_grammar_service(template_folder) as address:
        yield address


@pytest.fixture
async def start_server(template_folder: Path, known: PerfectModel, grammar_address: str) -> AsyncIterator[StartServer]:
    """Start a server, with mistakes if they are planted; give its URL. It stops when the test ends.

    With `engine_address` its gateway looks for an engine at that address.
    """
    known.requests.clear()
    known.texts.clear()
    async with AsyncExitStack() as stack:

        def served(engine: str) -> Settings:
            return Settings(
                model=template_folder, engine=engine, grammar=grammar_address, drain_seconds=1, idle_seconds=5
            )

        async def start(
            plant: Break = lambda _, right: right, failure: Exception | None = None, engine_address: str | None = None
        ) -> str:
            if engine_address is not None:
                return await stack.enter_async_context(serve_gateway(served(engine_address)))
            replies: dict[str, Sequence[int]] = {}

            def script(request: pb.GenerateRequest) -> Sequence[int]:
                # Asked for at every token.
                if request.request_id not in replies:
                    right = known.reply_to(request)
                    replies[request.request_id] = [*encode(plant(known.texts[-1], right)), USER]
                return replies[request.request_id]

            engine = FakeEngine(
                model=FakeModel(context_length=200_000, vocabulary_size=330, num_slots=4),
                script=script,
                tokens_per_step=64,
                failure=failure,
            )
            address = await stack.enter_async_context(serve_engine(engine))
            return await stack.enter_async_context(serve_gateway(served(address)))

        yield start
