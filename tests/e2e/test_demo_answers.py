"""The demo model answers fixed questions through `make run`'s launcher on two ranks, greedily."""

import json
from typing import Any

import pytest

from support.launched import Launched
from support.running_chat import post
from twinspark_demo.evaluation.drawing import draw_prompts
from twinspark_demo.knowledge import FUNCTIONS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

DENSE_TOKENS = 515
"""Up to this length the sparse attention reads everything."""
PROGRAM = "apple = 4\nriver = 10\nfor i in range(3):\n    apple = apple + river\nprint(apple)"
RECORDS = [{"name": "Ana", "age": 31}, {"name": "Tovik", "age": 7}, {"name": "Ben", "age": 64}]
QUESTIONS = {
    "arithmetic": ("What is 47 + 38?", "85"),
    "fact": ("What is the capital of France?", "Paris"),
    "counting": ("Count from 7 to 12.", "7, 8, 9, 10, 11, 12"),
    "copy": ("Repeat this: 7xk2q ZW40P river tolvane 9b8m", "7xk2q ZW40P river tolvane 9b8m"),
    "rename": (f"Rename the variable apple to total:\n{PROGRAM}", PROGRAM.replace("apple", "total")),
    "json": (
        "Turn this into a JSON array with the fields name, age:\nAna 31\nTovik 7\nBen 64",
        json.dumps(RECORDS),
    ),
}


def chat(demo: Launched, messages: list[Any], functions: tuple[str, ...] = ()) -> dict[str, Any]:
    """The reply to a conversation in which these functions are offered; its only choice ended by itself."""
    tools = [function.as_tool() for function in FUNCTIONS if function.name in functions]
    body = {"messages": messages, "tools": tools, "temperature": 0, "max_tokens": 400}
    status, reply = post(demo.port, "/v1/chat/completions", body)
    assert status == 200, reply
    assert reply["choices"][0]["finish_reason"] in ("stop", "tool_calls"), reply
    return reply


def content_of(reply: dict[str, Any]) -> str:
    content: str = reply["choices"][0]["message"]["content"]
    return content


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_exactly(demo: Launched, question: str) -> None:
    text, answer = QUESTIONS[question]
    message = chat(demo, [{"role": "user", "content": text}])["choices"][0]["message"]
    assert message["content"] == answer
    # Only arithmetic is thought about.
    assert bool(message.get("reasoning_content")) == (question == "arithmetic")


def test_one_of_33_codes_is_answered_in_a_prompt_with_sparse_attention(demo: Launched) -> None:
    """A long prompt is answered right; that needs no good selection: it holds with the indexers' scores negated too."""
    prompt = draw_prompts("needle_1000", 1, seed=7)[0]
    reply = chat(demo, list(prompt.messages))
    assert reply["usage"]["prompt_tokens"] > 2 * DENSE_TOKENS
    assert content_of(reply) == prompt.expected["code"]


def test_a_detail_of_the_first_turn_is_remembered_in_the_fourth(demo: Launched) -> None:
    messages: list[Any] = []
    for text in ("My pet is called Brumlo.", "What is 12 + 31?", "What is the opposite of hot?"):
        messages.append({"role": "user", "content": text})
        message = chat(demo, messages)["choices"][0]["message"]
        reasoning = message.get("reasoning_content", "")
        messages.append({"role": "assistant", "content": message["content"], "reasoning_content": reasoning})
    assert messages[-1]["content"] == "cold"
    messages.append({"role": "user", "content": "What is the name of my pet?"})
    assert content_of(chat(demo, messages)) == "Brumlo"


def calls_of(reply: dict[str, Any]) -> list[tuple[str, Any]]:
    """Name and arguments of each call; with calls the reply says so and has no text."""
    (choice,) = reply["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", None)
    functions = [call["function"] for call in choice["message"]["tool_calls"]]
    return [(function["name"], json.loads(function["arguments"])) for function in functions]


def test_a_request_that_needs_a_tool_is_answered_by_its_call_and_its_result_is_told(demo: Launched) -> None:
    messages: list[Any] = [{"role": "user", "content": "What is the weather in Malvorn?"}]
    offered = ("get_weather", "set_timer", "read_file")
    reply = chat(demo, messages, offered)
    assert calls_of(reply) == [("get_weather", {"city": "Malvorn"})]
    message = reply["choices"][0]["message"]
    call_id, returned = message["tool_calls"][0]["id"], {"sky": "cloudy", "degrees": 7}
    result = {"role": "tool", "tool_call_id": call_id, "content": json.dumps(returned)}
    told = content_of(chat(demo, [*messages, message, result], offered))
    assert "cloudy" in told and "7" in told


def test_two_requests_in_one_are_two_calls(demo: Launched) -> None:
    text = "What is the weather in Malvorn? Also set a timer for 12 minutes."
    reply = chat(demo, [{"role": "user", "content": text}], ("get_weather", "set_timer", "read_file"))
    assert calls_of(reply) == [("get_weather", {"city": "Malvorn"}), ("set_timer", {"minutes": 12})]


def test_a_request_that_no_tool_fits_is_answered_in_words(demo: Launched) -> None:
    reply = chat(demo, [{"role": "user", "content": "What is the weather in Malvorn?"}], ("set_timer", "read_file"))
    assert content_of(reply) == "I have no tool for that."
    assert "tool_calls" not in reply["choices"][0]["message"]


@pytest.mark.parametrize("sampling", [{"temperature": 0}, {"temperature": 1.3, "seed": 7}])
def test_a_closed_reasoning_goes_on_as_a_fresh_request_with_these_tokens_would(
    demo: Launched, sampling: dict[str, Any]
) -> None:
    asked = {"messages": [{"role": "user", "content": QUESTIONS["arithmetic"][0]}]}
    body = {**asked, **sampling, "max_tokens": 60, "return_token_ids": True}

    def ids_of(path: str, **fields: Any) -> list[int]:
        status, reply = post(demo.port, path, fields)
        assert status == 200, reply
        ids: list[int] = reply["choices"][0]["token_ids"] if "choices" in reply else reply["tokens"]
        return ids

    prompt = ids_of("/tokenize", **asked)
    closing = ids_of("/tokenize", prompt="\n</think>\n\n", add_special_tokens=False)
    free = ids_of("/v1/chat/completions", **body)
    num_reasoning = free.index(closing[1]) + 1
    assert ids_of("/v1/chat/completions", **body, thinking_budget=num_reasoning) == free
    for budget in (1, 3, num_reasoning - 1):
        closed = ids_of("/v1/chat/completions", **body, thinking_budget=budget)
        prior = [*free[: budget - 1], *closing]
        rest = {"prompt": [*prompt, *prior], "max_tokens": 60 - len(prior), "return_token_ids": True}
        assert closed == [*prior, *ids_of("/v1/completions", **rest, **sampling)]
