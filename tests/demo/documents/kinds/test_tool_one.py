"""One call: of the function that is asked for, with the values as the user wrote them."""

from collections import Counter
from collections.abc import Iterator
from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.kinds import tool_one
from twinspark_demo.knowledge import FUNCTIONS

BY_NAME = {function.name: function for function in FUNCTIONS}
CUES = {
    "get_weather": "weather rain rains raining warm cold coat sunny forecast outside temperature",
    "get_time": "time clock late hour",
    "get_stock_price": "stock share shares quote trades price trade stand",
    "get_population": "people live inhabitants population",
    "translate": "translate say word translation mean call what put turn give for",
    "send_message": "message text tell write send know told",
    "set_alarm": "alarm wake wake-up ring get me up",
    "set_timer": "timer minutes countdown count min ring time",
    "play_song": "play song track music hear put listen playing",
    "convert_money": "convert change exchange worth value money much conversion get dollars",
    "search_files": "file files find search",
    "read_file": "read open show print content contents text says say in file inside display contain written",
    "book_table": "table book reserve reservation",
    "get_distance": "distance far km way",
    "create_note": "note write down put keep save",
    "turn_on": "turn switch power on start activate running device",
}


def drawn(count: int, seed: int = 1) -> Iterator[Conversation]:
    rng = Random(seed)
    return (tool_one.make(rng, 1000) for _ in range(count))


def test_the_one_call_is_of_an_offered_function_with_the_arguments_of_its_schema() -> None:
    seen = Counter[str]()
    for conversation in drawn(2000):
        *_, request, reply = conversation.messages
        (call,) = reply["tool_calls"]
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        seen[name] += 1
        offered = [tool["function"]["name"] for tool in conversation.tools]
        assert 2 <= len(offered) <= 4
        assert name in offered
        assert (request["role"], reply["content"], reply["reasoning_content"]) == ("user", "", "")
        assert list(arguments) == list(BY_NAME[name].parameters)
        assert all(value in request["content"] for value in arguments.values() if isinstance(value, str))
    assert set(seen) == set(BY_NAME)
    assert min(seen.values()) > 60


def test_the_request_speaks_of_what_the_function_does() -> None:
    for conversation in drawn(3000):
        *_, request, reply = conversation.messages
        function = reply["tool_calls"][0]["function"]
        words = set(request["content"].lower().replace("?", " ").replace(",", " ").replace(":", " ").split())
        words |= {word.strip(".!;'\"") for word in words}
        assert words & set(CUES[function["name"]].split()), request["content"]


def test_a_request_has_one_reply() -> None:
    replies: dict[str, object] = {}
    for conversation in drawn(8000, seed=2):
        *_, request, reply = conversation.messages
        call = reply["tool_calls"][0]["function"]
        assert replies.setdefault(request["content"].lower(), call) == call or call["name"] != "set_alarm"
        known = replies[request["content"].lower()]
        assert isinstance(known, dict)
        assert known["name"] == call["name"], request["content"]
    assert len(replies) > 7000
