"""Right replies: the tokens that a served model would be given, and would have to say."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from support.planted_fault import Fault, planted
from twinspark_demo.drafts.replies import Reply, right_replies
from twinspark_demo.drafts.template import load_template, render
from twinspark_demo.evaluation.drawing import draw_prompts
from twinspark_demo.rows.encode import Encoder

COUNT = 12


def replies_of(kind: str, folder: Path) -> list[Reply]:
    encoder = Encoder.load(folder / "tokenizer.json")
    return right_replies(draw_prompts(kind, COUNT, seed=7), encoder, load_template(folder))


def check_texts(kind: str, folder: Path) -> None:
    tokenizer, template = Tokenizer.from_file(str(folder / "tokenizer.json")), load_template(folder)
    replies, prompts = replies_of(kind, folder), draw_prompts(kind, COUNT, seed=7)
    for prompt, reply in zip(prompts, replies, strict=True):
        asked = tokenizer.encode(render(template, prompt.messages, prompt.tools), add_special_tokens=False).ids
        assert reply.document.ids[: reply.start].tolist() == asked
        said = tokenizer.decode(reply.tokens.tolist(), skip_special_tokens=False)
        expected = json.dumps(prompt.expected) if kind == "json" else prompt.expected
        assert said == f"</think>{expected}<|user|>"


@pytest.mark.parametrize("kind", ["copy", "json", "rename", "facts"])
def test_a_reply_follows_the_template_s_prompt_and_ends_with_the_next_marker(kind: str, served_folder: Path) -> None:
    check_texts(kind, served_folder)


@pytest.mark.parametrize("new", ["int(others[-1])", "int(others[-1]) + 2"])
def test_the_check_finds_a_reply_that_starts_elsewhere(new: str, served_folder: Path) -> None:
    fault = Fault("start", "twinspark_demo.drafts.replies", "int(others[-1]) + 1", new)
    with planted(fault), pytest.raises(AssertionError):
        check_texts("copy", served_folder)


def test_a_reply_with_a_call_ends_where_its_result_begins(served_folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(served_folder / "tokenizer.json"))
    for reply in replies_of("tool_one", served_folder):
        said = tokenizer.decode(reply.tokens.tolist(), skip_special_tokens=False)
        assert said.startswith("</think><tool_call>")
        assert said.endswith("</tool_call><|observation|>")


@pytest.mark.parametrize("kind", ["arithmetic", "follow_up", "tool_result", "tool_none"])
def test_a_kind_without_one_right_reply_is_refused(kind: str, served_folder: Path) -> None:
    with pytest.raises(ValueError, match=f"{kind}: a kind is needed"):
        replies_of(kind, served_folder)


def test_another_template_than_the_trained_one_is_refused(served_folder: Path, tmp_path: Path) -> None:
    text = (served_folder / "chat_template.jinja").read_text()
    (tmp_path / "chat_template.jinja").write_text(text.replace("Reasoning Effort", "Effort"))
    encoder = Encoder.load(served_folder / "tokenizer.json")
    with pytest.raises(ValueError, match="template"):
        right_replies(draw_prompts("copy", 1), encoder, load_template(tmp_path))
