"""What strangers say when they need a function: three requests each, one of them held out, and a short command."""

from collections.abc import Mapping

from twinspark_demo.evaluation.prompt import Wording, wordings

REQUESTS: Mapping[str, tuple[Wording, ...]] = {
    "get_weather": wordings(
        ["What is the weather in {city}?", "Tell me the weather in {city}."],
        ["I travel to {city} tomorrow and want to know the weather there."],
    ),
    "get_time": wordings(
        ["What time is it in {city}?", "Tell me the local time in {city}."],
        ["Is it too late to ring my aunt in {city}? Check the local time there."],
    ),
    "get_stock_price": wordings(
        ["What is the stock price of {symbol}?", "Get the price of the stock {symbol}."],
        ["My broker talks about the stock {symbol} all day. What is its price?"],
    ),
    "get_population": wordings(
        ["How many people live in {country}?", "What is the population of {country}?"],
        ["For school I need the number of people in {country}."],
    ),
    "translate": wordings(
        ["Translate {word} into {language}.", "What is {word} in {language}?"],
        ["How would I say the word {word} in {language}? Please translate it."],
    ),
    "send_message": wordings(
        ["Send {person} a message: {text}", "Send a message to {person} that says: {text}"],
        ["Let {person} know by message: {text}"],
    ),
    "set_alarm": wordings(
        ["Set an alarm for {hour}:{minute:02}.", "Please set the alarm to {hour}:{minute:02}."],
        ["I must not oversleep. Set an alarm at {hour}:{minute:02}, please."],
    ),
    "set_timer": wordings(
        ["Set a timer for {minutes} minutes.", "Start a timer of {minutes} minutes."],
        ["The eggs need {minutes} minutes, so start a timer."],
    ),
    "play_song": wordings(
        ["Play the song {title}.", "Please play the song {title}."],
        ["I am in the mood for music. Play the song {title} for me."],
    ),
    "convert_money": wordings(
        ["Convert {amount} dollars to {currency}.", "How much is {amount} dollars in {currency}?"],
        ["I have {amount} dollars in my pocket. Convert the money to {currency}."],
    ),
    "search_files": wordings(
        ["Search for files named {name}.", "Find the files with the name {name}."],
        ["Somewhere on this disk there are files named {name}. Search for them."],
    ),
    "read_file": wordings(
        ["Read the file {path}.", "Open the file {path} and read it."],
        ["I would like to see what is in the file {path}."],
    ),
    "book_table": wordings(
        [
            "Book a table at {restaurant} for {people} people.",
            "Please book a table for {people} people at {restaurant}.",
        ],
        ["We are {people} people and hungry. Book a table at {restaurant}, please."],
    ),
    "get_distance": wordings(
        ["What is the distance between {origin} and {target}?", "How far is it from {origin} to {target}?"],
        ["I plan to drive from {origin} to {target}. What is the distance?"],
    ),
    "create_note": wordings(
        ["Write a note: {text}", "Create a note that says: {text}"],
        ["Do not let me forget this, put it in a note: {text}"],
    ),
    "turn_on": wordings(
        ["Turn on the {device}.", "Please turn the {device} on."],
        ["I cannot reach the switch. Turn on the {device} for me."],
    ),
}
COMMANDS: Mapping[str, str] = {
    "get_weather": "check the weather in {city}",
    "get_time": "tell me the time in {city}",
    "get_stock_price": "get the stock price of {symbol}",
    "get_population": "look up the population of {country}",
    "translate": "translate {word} into {language}",
    "set_alarm": "set an alarm for {hour}:{minute:02}",
    "set_timer": "set a timer for {minutes} minutes",
    "play_song": "play the song {title}",
    "convert_money": "convert {amount} dollars to {currency}",
    "search_files": "search for files named {name}",
    "read_file": "read the file {path}",
    "book_table": "book a table at {restaurant} for {people} people",
    "get_distance": "get the distance between {origin} and {target}",
    "turn_on": "turn on the {device}",
}
"""Functions whose argument is a whole sentence are missing: it has no clear end inside another sentence."""


def function_name_of(wording: Wording) -> str:
    """The function that a request of REQUESTS needs."""
    return next(name for name, found in REQUESTS.items() if wording in found)
