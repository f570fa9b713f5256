"""transcripts: replies equal those that a server of the same fingerprint gave before.

The first run under a fingerprint records what later ones are compared with, and proves nothing.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from twinspark_tools.gates.outcome import Outcome, Verdict, failed, skipped
from twinspark_tools.gates.prompts import draw_prompt
from twinspark_tools.gates.replies import Comparison, Reply, Scored
from twinspark_tools.gates.server import GREEDY, Ask, Server, ServerInfo
from twinspark_tools.gates.together import gather_all

LENGTHS = (5, 64, 150, 257, 600)
MAX_TOKENS = 16
NUM_TOGETHER = 4
SAMPLINGS: Mapping[str, Mapping[str, Any]] = {"greedy": GREEDY, "sampled": {"temperature": 1, "seed": 1234}}


async def run(server: Server) -> Outcome:
    """Each prompt greedily and sampled, alone; then some of them together."""
    asks = build_asks(server.info)
    found = {name: await server.complete(ask) for name, ask in asks.items()}
    names = list(asks)[-NUM_TOGETHER:]
    together = await gather_all(server.complete(asks[name]) for name in names)
    found |= {f"{name}, together": reply for name, reply in zip(names, together, strict=True)}
    path = server.records / f"transcripts-{_digest(server.info.fingerprint, asks)}.json"
    if not path.exists():
        write_record(path, server.info.fingerprint, found)
        return skipped(f"{len(found)} replies recorded: no reference of this fingerprint was in {server.records}")
    expected = read_record(path)
    compared = Comparison()
    for name, reply in found.items():
        compared.add(name, expected[name], reply)
    outcome = compared.outcome(f"replies equal those in {path}")
    if outcome.verdict is Verdict.PASSED:
        return outcome
    return failed(f"{outcome.detail}; the reference is {path}: drop it if the change was meant")


def build_asks(info: ServerInfo) -> dict[str, Ask]:
    """By name; cut to what the window holds."""
    room = info.context_length - MAX_TOKENS
    return {
        f"{length} tokens, {how}": Ask(draw_prompt(info, f"transcript {length}", min(length, room)), MAX_TOKENS, params)
        for length in LENGTHS
        for how, params in SAMPLINGS.items()
    }


def write_record(path: Path, fingerprint: str, replies: Mapping[str, Reply]) -> None:
    """Write the reference, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"fingerprint": fingerprint, "replies": {name: asdict(reply) for name, reply in replies.items()}}
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(content), encoding="utf-8")
    draft.replace(path)


def read_record(path: Path) -> dict[str, Reply]:
    """What write_record wrote, bit for bit."""
    replies = json.loads(path.read_text(encoding="utf-8"))["replies"]
    return {name: _reply_from_json(content) for name, content in replies.items()}


def _reply_from_json(content: Mapping[str, Any]) -> Reply:
    scores = tuple(
        Scored(entry["token"], entry["logprob"], tuple((token, value) for token, value in entry["top"]))
        for entry in content["scores"]
    )
    return Reply(tuple(content["token_ids"]), scores, content["finish_reason"])


def _digest(fingerprint: str, asks: Mapping[str, Ask]) -> str:
    """Names the deployment and what is asked: other requests need another reference."""
    asked = [fingerprint, *(repr((list(ask.prompt), ask.max_tokens, dict(ask.sampling))) for ask in asks.values())]
    return hashlib.sha256("\n".join(asked).encode()).hexdigest()[:16]
