"""Completions: prompts of every form, echo, log probabilities, and folders without a tokenizer."""

import json
import math
from typing import Any

from fakes.engine import FakeEngine
from support.scripts import encode, say
from support.tiny_tokenizer import build_tokenizer, write_folder

COMPLETIONS = "/v1/completions"


async def test_token_ids_run_exactly_as_given(gateway: Any) -> None:
    prompt = [277, 5, 283, 303, 0]
    reply = (await gateway.post(COMPLETIONS, {"prompt": prompt, "max_tokens": 1})).json()
    assert list(gateway.engine.requests[-1].prompt_token_ids) == prompt
    assert reply["usage"]["prompt_tokens"] == 5


async def test_spelled_special_tokens_of_a_text_prompt_are_tokens(gateway: Any) -> None:
    await gateway.post(COMPLETIONS, {"prompt": "<|user|>a", "max_tokens": 1})
    assert list(gateway.engine.requests[-1].prompt_token_ids) == [277, *encode("a")]


async def test_a_missing_limit_is_16_tokens(gateway: Any) -> None:
    reply = (await gateway.post(COMPLETIONS, {"prompt": "a", "ignore_eos": True})).json()
    assert reply["usage"]["completion_tokens"] == 16


async def test_prompts_and_choices_are_numbered_and_counted_together(gateway: Any) -> None:
    body = {"prompt": ["a", "hello the", "b"], "n": 2, "max_tokens": 3, "ignore_eos": True, "return_token_ids": True}
    reply = (await gateway.post(COMPLETIONS, body)).json()
    assert [choice["index"] for choice in reply["choices"]] == [0, 1, 2, 3, 4, 5]
    assert reply["usage"]["prompt_tokens"] == 1 + 3 + 1
    assert reply["usage"]["completion_tokens"] == 18
    alone = (await gateway.post(COMPLETIONS, body | {"prompt": "hello the"})).json()
    ids = [choice["token_ids"] for choice in reply["choices"]]
    assert [choice["token_ids"] for choice in alone["choices"]] == ids[2:4]


async def test_many_prompts_do_not_fill_the_engines_queue(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(queue_limit=0))
    reply = await gateway.post(COMPLETIONS, {"prompt": ["a"] * 20, "max_tokens": 2})
    assert reply.status_code == 200, reply.text


async def test_logprobs_cover_prompt_and_output_and_are_the_engines(gateway: Any) -> None:
    prompt = encode("hello the wörld")
    body = {"prompt": prompt, "max_tokens": 6, "echo": True, "logprobs": 3, "seed": 4, "return_token_ids": True}
    choice = (await gateway.post(COMPLETIONS, body)).json()["choices"][0]
    ids = prompt + choice["token_ids"]
    logprobs = choice["logprobs"]
    assert {len(values) for values in logprobs.values()} == {len(ids)}
    model = gateway.engine.model
    expected = [model.log_softmax(ids[:i])[ids[i]] for i in range(1, len(ids))]
    assert logprobs["token_logprobs"][0] is None
    assert all(math.isclose(a, b) for a, b in zip(logprobs["token_logprobs"][1:], expected, strict=True))
    assert logprobs["top_logprobs"][0] is None
    for token, top, value in zip(logprobs["tokens"], logprobs["top_logprobs"], logprobs["token_logprobs"], strict=True):
        if top is not None:
            assert top[token] == value
            assert 3 <= len(top) <= 4
    offsets = logprobs["text_offset"]
    assert offsets == sorted(offsets)
    assert offsets[-1] <= len(choice["text"])
    for token, offset in zip(logprobs["tokens"][: len(prompt)], offsets, strict=False):
        if not token.startswith("bytes:"):
            assert choice["text"].startswith(token, offset)


async def test_streamed_and_whole_replies_agree(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(tokens_per_step=3))
    for params in ({}, {"echo": True}, {"echo": True, "logprobs": 2}, {"logprobs": 0, "stop": ["a", "\x05"]}):
        body = {"prompt": ["hello", "the"], "max_tokens": 30, "ignore_eos": True, "return_token_ids": True} | params
        whole = (await gateway.post(COMPLETIONS, body)).json()
        events = await gateway.events(COMPLETIONS, body | {"stream_options": {"include_usage": True}})
        assert events.pop() == "[DONE]"
        chunks = [json.loads(event) for event in events]
        assert chunks.pop()["usage"] == whole["usage"]
        for choice in whole["choices"]:
            mine = [chunk["choices"][0] for chunk in chunks if chunk["choices"][0]["index"] == choice["index"]]
            assert "".join(part["text"] for part in mine) == choice["text"]
            assert [i for part in mine for i in part.get("token_ids", [])] == choice["token_ids"]
            assert mine[-1]["finish_reason"] == choice["finish_reason"]
            parts = [part["logprobs"] for part in mine if part["logprobs"]]
            for key in choice["logprobs"] or {}:
                assert [value for part in parts for value in part[key]] == choice["logprobs"][key], key


async def test_a_prefill_probe_gets_at_least_two_events_one_with_text(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=say("ab")))
    events = await gateway.events(COMPLETIONS, {"prompt": [1] * 100, "max_tokens": 2, "ignore_eos": True})
    assert len(events) >= 3
    assert json.loads(events[0])["choices"][0]["text"]


async def test_a_stop_string_works_with_ignored_end_tokens(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=say("hello the wörld")))
    body = {"prompt": "a", "stop": ["ör"], "ignore_eos": True, "max_tokens": 50}
    reply = (await gateway.post(COMPLETIONS, body)).json()
    choice = reply["choices"][0]
    assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == ("hello the w", "stop", "ör")
    assert reply["usage"]["completion_tokens"] == len(encode("hello the wör"))


async def test_without_a_tokenizer_token_ids_still_work(start_gateway: Any, tmp_path: Any) -> None:
    gateway = await start_gateway(model=tmp_path)
    body = {"prompt": [1, 2, 3], "max_tokens": 4, "echo": True, "logprobs": 1, "return_token_ids": True}
    choice = (await gateway.post(COMPLETIONS, body)).json()["choices"][0]
    assert choice["text"] == ""
    assert choice["logprobs"]["tokens"] == [f"token_id:{token_id}" for token_id in [1, 2, 3, *choice["token_ids"]]]
    events = await gateway.events(COMPLETIONS, body)
    assert events[-1] == "[DONE]"
    for path, refused, param in (
        (COMPLETIONS, {"prompt": "text"}, "prompt"),
        (COMPLETIONS, {"prompt": [1], "stop": "a"}, "stop"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}, "messages"),
        ("/tokenize", {"prompt": "a"}, "prompt"),
        ("/detokenize", {"tokens": [1]}, "tokens"),
    ):
        response = await gateway.post(path, refused)
        error = response.json()["error"]
        assert (response.status_code, error["param"], error["code"]) == (400, param, "no_tokenizer"), path


async def test_a_bare_tokenizer_file_serves_completions_and_names_the_missing_template(
    start_gateway: Any, tmp_path: Any
) -> None:
    gateway = await start_gateway(model=write_folder(tmp_path, template=False))
    assert (await gateway.post(COMPLETIONS, {"prompt": "hello", "max_tokens": 1})).status_code == 200
    response = await gateway.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]})
    assert response.status_code == 400
    assert "chat_template.jinja" in response.json()["error"]["message"]


async def test_any_text_comes_back_from_its_tokens(gateway: Any) -> None:
    for text in ("", "hello  the\n\twörld 😀", "<|user|><think>\x00", "\ufffd"):
        tokens = (await gateway.post("/tokenize", {"prompt": text})).json()["tokens"]
        assert tokens == build_tokenizer().encode(text).ids
        assert (await gateway.post("/detokenize", {"tokens": tokens})).json() == {"prompt": text}
