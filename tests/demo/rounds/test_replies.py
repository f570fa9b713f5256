"""Conversations: every turn is asked behind the replies to the turns before."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from twinspark_demo.evaluation.drawing import draw_prompts
from twinspark_demo.rounds.engine import ServedTarget
from twinspark_demo.rounds.replies import Conversations
from twinspark_tools.launch.model_folder import DEMO_FOLDER

MODEL = Path(__file__).parents[3] / DEMO_FOLDER


@pytest.mark.slow
def test_a_later_turn_is_asked_behind_all_replies_before_it() -> None:
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    (prompt,) = draw_prompts("follow_up", 1, seed=5)
    asked: list[str] = []
    contents: list[str] = []
    for said in Conversations(MODEL, ServedTarget(MODEL, (0,))).replies(prompt):
        asked.append(tokenizer.decode(list(said.prompt), skip_special_tokens=False))
        reply = tokenizer.decode(list(said.tokens[:-1]), skip_special_tokens=False)
        contents.append(reply.partition("</think>")[2])
    assert len(asked) == len(prompt.later_turns) + 1
    for place, text in enumerate(asked):
        turns = [prompt.messages[0]["content"], *prompt.later_turns][: place + 1]
        written = [part for turn, content in zip(turns, contents, strict=False) for part in (turn, content)]
        places = [text.find(part) for part in [*written[: 2 * place], turns[-1]]]
        assert places == sorted(places) and -1 not in places, text
    assert all(contents)
    assert prompt.expected in contents[-1]
