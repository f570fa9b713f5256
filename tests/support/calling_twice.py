"""A fake engine that thinks, says something and calls get_weather twice, and tells the results once it has them."""

from collections.abc import Sequence
from typing import Any

from fakes.engine import FakeEngine
from fakes.engine_model import FakeModel
from support.scripts import encode
from support.tiny_tokenizer import build_tokenizer
from twinspark.engine.v1 import engine_pb2 as pb

CITY = "<tool_call>get_weather<arg_key>city</arg_key><arg_value>{}</arg_value></tool_call>"


def prompt_of(request: pb.GenerateRequest) -> str:
    """The prompt's text, its special tokens too."""
    return str(build_tokenizer().decode(list(request.prompt_token_ids), skip_special_tokens=False))


def answer(request: pb.GenerateRequest) -> Sequence[int]:
    """Call twice, with text between; with two results in the prompt tell them."""
    if "<tool_response>" in prompt_of(request):
        return encode("I know now.</think>Sun and rain.<|user|>")
    calls = f"{CITY.format('Oslo')}And then?{CITY.format('Tromsø')}"
    return encode(f"Two cities.</think>Let me look.\n{calls}<|observation|>")


def build_engine(**settings: Any) -> FakeEngine:
    """An engine of 8,192 tokens of context."""
    return FakeEngine(FakeModel(context_length=8192), **settings)
