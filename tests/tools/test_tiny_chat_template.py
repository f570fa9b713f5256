"""The tiny checkpoint's chat template, rendered by Transformers: the layout of GLM-5.3-Flash prompts."""

from pathlib import Path
from typing import Any

import jinja2
import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

Messages = list[dict[str, Any]]
HI: Messages = [{"role": "user", "content": "hi"}]
CALLS = [
    {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": "1", "y": 2, "z": ["é"]}}},
    {"id": "b", "type": "function", "function": {"name": "g", "arguments": {}}},
]
CALL_TEXT = (
    "<tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value><arg_key>y</arg_key><arg_value>2</arg_value>"
    '<arg_key>z</arg_key><arg_value>["é"]</arg_value></tool_call><tool_call>g</tool_call>'
)


@pytest.fixture(scope="module")
def tokenizer(tiny_folder: Path) -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(tiny_folder)


def render(tokenizer: PreTrainedTokenizerFast, messages: Messages, **options: Any) -> str:
    text = tokenizer.apply_chat_template(messages, tokenize=False, **options)
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "<|system|>Reasoning Effort: Max<|user|>hi<|assistant|><think>"),
        ({"reasoning_effort": "low"}, "<|system|>Reasoning Effort: Low<|user|>hi<|assistant|><think>"),
        ({"reasoning_effort": "high"}, "<|system|>Reasoning Effort: High<|user|>hi<|assistant|><think>"),
        ({"reasoning_effort": "medium"}, "<|system|>Reasoning Effort: Max<|user|>hi<|assistant|><think>"),
        ({"enable_thinking": True}, "<|system|>Reasoning Effort: Max<|user|>hi<|assistant|><think>"),
        ({"enable_thinking": False}, "<|user|>hi<|assistant|><think></think>"),
        ({"thinking": False, "reasoning_effort": "low"}, "<|user|>hi<|assistant|><think></think>"),
    ],
)
def test_effort_line_and_opener_follow_the_options(
    tokenizer: PreTrainedTokenizerFast, options: dict[str, Any], expected: str
) -> None:
    assert render(tokenizer, HI, add_generation_prompt=True, **options) == "[gMASK]<sop>" + expected


def test_tools_are_one_block_with_a_line_each(tokenizer: PreTrainedTokenizerFast) -> None:
    tools = [
        {"type": "function", "function": {"name": "f", "strict": True, "parameters": {"z": 1, "a": "é"}}},
        {"type": "function", "function": {"name": "later", "defer_loading": True}},
        {"name": "bare", "defer_loading": False},
    ]
    text = render(tokenizer, HI, tools=tools)
    block = text.split("<|system|>")[2].split("<|user|>")[0]
    assert block.startswith("\n# Tools\n")
    lines = block.split("<tools>\n")[1].split("</tools>")[0].splitlines()
    assert lines == ['{"name": "f", "parameters": {"z": 1, "a": "é"}}', '{"name": "bare"}']


def test_calls_and_results_are_rendered_in_call_order(tokenizer: PreTrainedTokenizerFast) -> None:
    messages: Messages = [
        {"role": "assistant", "content": None, "reasoning_content": "why", "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "b", "content": "B"},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "A"}]},
    ]
    results = "<|observation|><tool_response>A</tool_response><tool_response>B</tool_response>"
    text = render(tokenizer, HI + messages, enable_thinking=False)
    assert text == f"[gMASK]<sop><|user|>hi<|assistant|><think>why</think>{CALL_TEXT}{results}"


@pytest.mark.parametrize("ids", [("b", "b"), ("b", "x"), ("b", None)])
def test_results_that_match_no_call_keep_their_order(
    tokenizer: PreTrainedTokenizerFast, ids: tuple[str | None, str | None]
) -> None:
    results: Messages = [
        {"role": "tool", "content": text} | ({} if call_id is None else {"tool_call_id": call_id})
        for text, call_id in zip("BA", ids, strict=True)
    ]
    text = render(tokenizer, [*HI, {"role": "assistant", "content": "", "tool_calls": CALLS}, *results])
    assert text.endswith("<|observation|><tool_response>B</tool_response><tool_response>A</tool_response>")


def test_separate_runs_of_results_have_separate_markers(tokenizer: PreTrainedTokenizerFast) -> None:
    tool = {"role": "tool", "tool_call_id": "a", "content": "R"}
    call = {"role": "assistant", "content": "", "tool_calls": CALLS[:1]}
    text = render(tokenizer, [*HI, call, tool, call, tool])
    assert text.count("<|observation|><tool_response>R</tool_response>") == 2


def test_reasoning_comes_from_its_field_or_from_the_content(tokenizer: PreTrainedTokenizerFast) -> None:
    messages: Messages = [
        {"role": "assistant", "content": " one ", "reasoning_content": " r1 "},
        {"role": "assistant", "content": "<think>r2</think> two "},
        {"role": "assistant", "content": "three"},
    ]
    expected = "<|assistant|><think>r1</think>one<|assistant|><think>r2</think>two<|assistant|><think></think>three"
    assert render(tokenizer, HI + messages).endswith("<|user|>hi" + expected)


def test_clear_thinking_drops_what_is_before_the_last_user_message(tokenizer: PreTrainedTokenizerFast) -> None:
    old = {"role": "assistant", "content": "A", "reasoning_content": "old"}
    new = {"role": "assistant", "content": "B", "reasoning_content": "new"}
    messages = [*HI, old, *HI, new]
    assert "<think>old</think>A" in render(tokenizer, messages)
    cleared = render(tokenizer, messages, clear_thinking=True)
    assert cleared.endswith("<think></think>A<|user|>hi<|assistant|><think>new</think>B")


def test_media_parts_become_their_markers(tokenizer: PreTrainedTokenizerFast) -> None:
    parts = [
        {"type": "text", "text": "see "},
        {"type": "image"},
        {"type": "video"},
        {"type": "audio"},
        {"type": "image_url"},
    ]
    image = "<|begin_of_image|><|image|><|end_of_image|>"
    video = "<|begin_of_video|><|video|><|end_of_video|>"
    expected = f"<|user|>see {image}{video}<|begin_of_audio|><|end_of_audio|>{image}"
    assert render(tokenizer, [{"role": "user", "content": parts}]).endswith(expected)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"role": "developer", "content": "x"}, "unknown role: developer"),
        ({"role": "user", "content": [{"type": "file"}]}, "unknown content part: file"),
        ({"role": "user", "content": {"text": "x"}}, "content must be"),
    ],
)
def test_nothing_is_dropped_in_silence(tokenizer: PreTrainedTokenizerFast, message: dict[str, Any], error: str) -> None:
    with pytest.raises(jinja2.exceptions.TemplateError, match=error):
        render(tokenizer, [message])


def test_every_marker_of_a_prompt_is_one_token(tokenizer: PreTrainedTokenizerFast) -> None:
    ids = tokenizer.encode(render(tokenizer, HI, add_generation_prompt=True), add_special_tokens=False)
    tokens = tokenizer.convert_ids_to_tokens(ids)
    assert tokens[:3] == ["[gMASK]", "<sop>", "<|system|>"]
    assert tokens[-2:] == ["<|assistant|>", "<think>"]
