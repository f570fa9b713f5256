"""Requests of one call, some as people tell them: the values first, in a sentence of their own."""

from collections.abc import Mapping
from random import Random

from twinspark_demo.documents import tool_values
from twinspark_demo.documents.remarks import with_remark, with_remark_behind
from twinspark_demo.documents.tool_requests import clause, sentence
from twinspark_demo.documents.tool_tales import TALES
from twinspark_demo.documents.tool_values import Argument
from twinspark_demo.knowledge import Function

STORY_SHARE = 0.24
_LITTLE_SHARE = 0.25  # of stories
_BEFORE_SHARE, _BEHIND_SHARE = 0.08, 0.07  # of requests

STORIES: Mapping[str, tuple[str, ...]] = {
    "get_weather": (
        "Next week I fly to {city}, how is the weather?",
        "We go to {city} today. Will it rain?",
        "I am on my way to {city}, do I need a coat or an umbrella?",
    ),
    "get_time": (
        "My sister lives in {city}. How late is it for her?",
        "There is a meeting in {city}, what is the local time?",
        "Are the shops open in {city}? I need the time.",
    ),
    "get_stock_price": (
        "Everybody buys {symbol}. What does a share cost?",
        "I own some {symbol} stock, what is the price now?",
        "Is {symbol} expensive? Look up the stock price.",
    ),
    "get_population": (
        "{country} seems big. How many people live there?",
        "We learn about {country} today, what is its population?",
        "Do more people live in {country} now? Give me the number.",
    ),
    "translate": (
        "The word is {word} and the language is {language}, translate it.",
        "Somebody said {word}. What is that in {language}?",
        "I learn {language}. What do they say for {word}?",
    ),
    "send_message": (
        "{person} is waiting. Send a message with this: {text}",
        "I have news to tell {person}: {text}",
        "{person} must read this, so send it: {text}",
    ),
    "set_alarm": (
        "My train leaves early, wake me at {time}.",
        "School starts soon. Put the alarm on {time}.",
        "I always sleep too long, so I need an alarm at {time}.",
    ),
    "set_timer": (
        "The cake takes {minutes} minutes. Set a timer.",
        "I have {minutes} minutes left, start the countdown.",
        "Tea needs {minutes} minutes, can you time it?",
    ),
    "play_song": (
        "There is a song called {title}, play it.",
        "My favourite song is {title}. Can you play it?",
        "It is so quiet here, put on {title}.",
    ),
    "convert_money": (
        "We have {amount} dollars and need {currency}. Convert them.",
        "A coat costs {amount} dollars. How much is that in {currency}?",
        "I get {amount} dollars from you, how many {currency} is that?",
    ),
    "search_files": (
        "I lost a file named {name}. Search for it.",
        "There must be files called {name}, can you find them?",
        "My files have the name {name}, where are they?",
    ),
    "read_file": (
        "The file is {path}. Read it to me.",
        "There is some text in {path}, read it to me.",
        "Yesterday I wrote {path}. Show me the text.",
    ),
    "book_table": (
        "There will be {people} of us. Book a table at {restaurant}.",
        "We want to eat at {restaurant} with {people} people, reserve a table.",
        "{people} people want to eat. Get a table at {restaurant}.",
    ),
    "get_distance": (
        "I live in {origin} and work in {target}. How far is that?",
        "We walk from {origin} to {target}, how many km is it?",
        "A train goes from {origin} to {target}. Tell me the distance.",
    ),
    "create_note": (
        "Keep this in mind with a note: {text}",
        "I must remember this, write a note: {text}",
        "This is important and belongs in a note: {text}",
    ),
    "turn_on": (
        "It is dark here, turn on the {device}.",
        "Where is the button? Switch the {device} on.",
        "The {device} is off. Turn it on.",
    ),
}


def request(rng: Random, function: Function) -> tuple[str, dict[str, Argument]]:
    """A message that asks for one call of the function, and the arguments in the order of its schema."""
    if rng.random() < STORY_SHARE:
        text, arguments = story(rng, function)
    else:
        asked = clause(rng, function)
        text, arguments = sentence(rng, asked), asked.arguments
    return with_remarks(rng, text), arguments


def story(rng: Random, function: Function) -> tuple[str, dict[str, Argument]]:
    """A message of several sentences or verbs that asks for one call, and the arguments."""
    arguments, texts = tool_values.arguments(rng, function)
    if rng.random() < _LITTLE_SHARE:
        return rng.choice(STORIES[function.name]).format(**texts), arguments
    text = TALES[function.name].write(rng, **texts)
    if rng.random() < 0.1 and not text.startswith(tuple(texts.values())):
        text = text[0].lower() + text[1:]
    return text, arguments


def with_remarks(rng: Random, text: str) -> str:
    """The message, sometimes with a remark before or behind it."""
    draw = rng.random()
    if draw < _BEFORE_SHARE:
        text = with_remark(rng, text, may_change_case=False)
        return text[0].upper() + text[1:]
    return with_remark_behind(rng, text) if draw < _BEFORE_SHARE + _BEHIND_SHARE else text
