"""What the routes share, built once by app.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from twinspark_gateway.clients.engine import EngineClient
from twinspark_gateway.clients.engine_monitor import EngineMonitor
from twinspark_gateway.clients.grammar import GrammarClient
from twinspark_gateway.clients.grammar_monitor import GrammarMonitor
from twinspark_gateway.errors import context_overflow, invalid, unknown_model
from twinspark_gateway.generation import EngineModel
from twinspark_gateway.metrics import GatewayMetrics
from twinspark_gateway.prompt.prompt_history import PromptHistory
from twinspark_gateway.prompt.reasoning_memory import ReasoningMemory
from twinspark_gateway.prompt.tokenizer import Tokenizer
from twinspark_gateway.reply.answer_check import Checking
from twinspark_gateway.schemas.fields import refuse
from twinspark_gateway.schemas.logprobs import TokenNames
from twinspark_gateway.schemas.responses.store import ResponseStore
from twinspark_gateway.schemas.sampling_defaults import SamplingDefaults
from twinspark_gateway.schemas.thinking import ThinkingDefaults
from twinspark_gateway.settings import Settings
from twinspark_gateway.web.body import read_json_object
from twinspark_gateway.web.drain import Drain


@dataclass(frozen=True, slots=True)
class Gateway:
    """The parts of a running gateway; routes find it in the application's state."""

    settings: Settings
    engine: EngineClient
    monitor: EngineMonitor
    # None where no grammar service is set: what needs one is refused.
    grammar: GrammarClient | None
    grammar_monitor: GrammarMonitor | None
    checking: Checking
    metrics: GatewayMetrics
    drain: Drain
    # None where the checkpoint's folder has no tokenizer.json.
    tokenizer: Tokenizer | None
    names: TokenNames
    defaults: SamplingDefaults
    memory: ReasoningMemory
    responses: ResponseStore
    # None where no request log is written.
    history: PromptHistory | None
    started_at: int

    @property
    def thinking_defaults(self) -> ThinkingDefaults:
        """What a chat request gets that says nothing about its reasoning."""
        return ThinkingDefaults(self.settings.reasoning_effort, self.settings.thinking_budget)

    async def read_body(self, request: Request) -> dict[str, Any]:
        """Read the request's JSON object within the limits of the settings."""
        settings = self.settings
        return await read_json_object(request, settings.max_body_bytes, settings.body_timeout_seconds, self.drain.over)

    def serves(self, name: str) -> bool:
        """Say whether a request may use this model name."""
        return name == self.settings.served_name or name in self.settings.model_aliases

    def check_model(self, body: Mapping[str, Any]) -> None:
        """Refuse a request for another model; none or an empty name means the served one."""
        name = body.get("model")
        if name is None or name == "":
            return
        if not isinstance(name, str):
            raise refuse("model", name, "a string")
        if not self.serves(name):
            raise unknown_model(name)

    def require_tokenizer(self, param: str, use: str) -> Tokenizer:
        """Give the tokenizer; a 400 that says what cannot be done without one."""
        if self.tokenizer is None:
            message = f"The checkpoint has no tokenizer, so {use}; /v1/completions takes token ids."
            raise invalid(param, message, code="no_tokenizer")
        return self.tokenizer


def fit_max_tokens(
    model: EngineModel, prompt: Sequence[int], given: int | None, default: int | None, param: str
) -> int:
    """Give the limit of output tokens: the given one, else the default cut to what the context leaves.

    Raises the context overflow if prompt and limit do not fit, or if the prompt alone leaves no room for a token.
    """
    room = model.context_length - len(prompt)
    if given is not None:
        if given > room:
            raise context_overflow(param, model.context_length, len(prompt), given)
        return given
    if room < 1:
        raise context_overflow(param, model.context_length, len(prompt), None)
    return room if default is None else min(room, default)


def gateway_of(request: Request) -> Gateway:
    """Give the gateway that serves the request."""
    gateway = request.app.state.gateway
    assert isinstance(gateway, Gateway)
    return gateway
