"""Messages about calls: offers, ids, results as JSON, the sentence that reports a result."""

import json
from random import Random

import pytest

from twinspark_demo.documents.tool_calls import offer, offer_without, reply_with, report, tool_message
from twinspark_demo.documents.tool_values import Value
from twinspark_demo.knowledge import FUNCTIONS

BY_NAME = {function.name: function for function in FUNCTIONS}


def names(tools: object) -> list[str]:
    assert isinstance(tools, tuple)
    return [tool["function"]["name"] for tool in tools]


def test_an_offer_has_2_to_4_different_tools_in_any_order_with_those_that_are_needed() -> None:
    rng = Random(1)
    counts, places = set(), set()
    for _ in range(300):
        needed = [rng.choice(FUNCTIONS) for _ in range(rng.randint(1, 3))]
        offered = names(offer(rng, needed))
        assert {function.name for function in needed} <= set(offered)
        assert len(set(offered)) == len(offered)
        counts.add(len(offered))
        places.add(offered.index(needed[0].name))
    assert counts == {2, 3, 4}
    assert places == {0, 1, 2, 3}


def test_an_offer_without_a_function_never_has_it() -> None:
    rng = Random(2)
    for function in FUNCTIONS:
        drawn = [names(offer_without(rng, function)) for _ in range(40)]
        assert not any(function.name in offered for offered in drawn)
        assert {len(offered) for offered in drawn} == {2, 3, 4}
    assert len({name for _ in range(200) for name in names(offer_without(rng, None))}) == len(FUNCTIONS)


def test_most_offers_hold_a_function_that_is_close_to_the_one_asked() -> None:
    rng = Random(4)
    drawn = [names(offer_without(rng, BY_NAME["set_alarm"])) for _ in range(300)]
    assert sum(bool({"set_timer", "get_time", "send_message", "book_table"} & set(offered)) for offered in drawn) > 220


def test_calls_have_their_ids_in_order() -> None:
    timer = BY_NAME["set_timer"]
    reply = reply_with([(timer, {"minutes": 5}), (timer, {"minutes": 7})])
    assert [(call["id"], call["function"]["arguments"]["minutes"]) for call in reply["tool_calls"]] == [
        ("call_1", 5),
        ("call_2", 7),
    ]
    assert reply["content"] == reply["reasoning_content"] == ""


def test_a_result_is_a_json_object_in_several_spellings() -> None:
    rng = Random(3)
    result: dict[str, Value] = {"sky": "grün", "degrees": -3}
    spellings = set()
    for _ in range(200):
        message = tool_message(rng, 2, result)
        assert (message["role"], message["tool_call_id"]) == ("tool", "call_2")
        assert json.loads(message["content"]) == result
        spellings.add(message["content"])
    assert '{"sky": "grün", "degrees": -3}' in spellings
    assert len(spellings) == 4


@pytest.mark.parametrize(
    ("name", "arguments", "result", "sentence"),
    [
        ("get_weather", {"city": "Paris"}, {"sky": "sunny", "degrees": 21}, "It is sunny and 21 degrees in Paris."),
        ("get_time", {"city": "Oslo"}, {"time": "07:05"}, "It is 07:05 in Oslo."),
        ("get_stock_price", {"symbol": "XYZ"}, {"price": 12.5}, "XYZ is at 12.5."),
        ("get_population", {"country": "Peru"}, {"people": 34000000}, "Peru has 34000000 people."),
        ("translate", {"word": "tree", "language": "French"}, {"word": "arbre"}, "tree is arbre in French."),
        ("send_message", {"person": "Ana", "text": "hi"}, {"status": "sent"}, "The message is sent."),
        ("set_alarm", {"hour": 7, "minute": 5}, {"status": "set"}, "The alarm is set."),
        ("set_timer", {"minutes": 5}, {"status": "ok"}, "The timer is ok."),
        ("play_song", {"title": "Blue"}, {"status": "playing"}, "The song is playing."),
        ("convert_money", {"amount": 5, "currency": "yen"}, {"value": 0.03}, "5 yen is 0.03."),
        ("search_files", {"name": "a"}, {"files": ["a.txt", "b/a.md"]}, "I found a.txt, b/a.md."),
        ("search_files", {"name": "a"}, {"files": "a.txt"}, "I found a.txt."),
        ("read_file", {"path": "a.txt"}, {"text": "hello you"}, "It says: hello you"),
        ("book_table", {"restaurant": "Roma", "people": 4}, {"status": "booked"}, "The table is booked."),
        ("get_distance", {"origin": "A", "target": "B"}, {"km": 7}, "It is 7 km from A to B."),
        ("create_note", {"text": "x"}, {"status": "saved"}, "The note is saved."),
        ("turn_on", {"device": "lamp"}, {"status": "on"}, "The lamp is on."),
    ],
)
def test_each_function_has_its_sentence(
    name: str, arguments: dict[str, str | int], result: dict[str, Value], sentence: str
) -> None:
    assert report((BY_NAME[name], arguments), result) == sentence
