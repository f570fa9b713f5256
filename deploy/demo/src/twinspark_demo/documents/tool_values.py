"""Values of calls and results: what a function's parameters and result keys may be, mostly words that none has seen.

An argument is drawn with the words that stand for it in a request ("7:30" for hour 7 and minute 30).
"""

from collections.abc import Callable, Mapping
from random import Random

from twinspark_demo.documents import words
from twinspark_demo.knowledge import CAPITALS, Function

Value = str | int | float | list[str]
Argument = str | int

_CITIES = (*CAPITALS.values(), "London", "New York", "Boston", "Munich", "Milan", "Sydney", "Cape Town", "Seoul",
           "Rio de Janeiro", "San Francisco", "Hamburg", "Geneva", "Prague", "Toronto", "Chicago", "Bombay",
           "Los Angeles")  # fmt: skip
_COUNTRIES = (*CAPITALS, "Brazil", "Mexico", "Turkey", "Iceland", "New Zealand", "South Korea", "Belgium", "Iran")
_SYMBOLS = ("AAPL", "MSFT", "NVDA", "TSLA", "IBM", "GOOG", "AMZN", "INTC", "META", "SAP", "BMW", "ORCL")
_LANGUAGES = ("French", "German", "Italian", "Spanish", "Latin", "Greek", "Dutch", "Danish", "Polish", "Japanese",
              "Russian", "Chinese", "Swedish", "Turkish", "Finnish", "Welsh", "Arabic", "Hindi", "Norse")  # fmt: skip
_PEOPLE = ("Ana", "Ben", "Tom", "Mia", "Sam", "Lena", "Paul", "Maria", "Peter", "Anna", "John", "Emma", "Max", "Laura",
           "David", "Sara", "Bob", "Alice", "Leo", "Nina", "Mum", "Dad")  # fmt: skip
_CURRENCIES = ("dollars", "euros", "pounds", "yen", "francs", "pesos", "crowns", "rupees",
               "roubles", "dinars", "lira", "won", "krona", "zloty", "Swiss francs",
               "Danish crowns", "INR", "JPY", "USD", "EUR", "GBP", "CHF")  # fmt: skip
_DEVICES = ("lamp", "light", "radio", "heater", "fan", "television", "kitchen light", "coffee machine", "oven",
            "printer", "computer", "bedroom lamp", "air conditioner", "tv", "garden lights", "boiler")  # fmt: skip
_EXTENSIONS = (".txt", ".md", ".py", ".json", ".csv", ".log", ".pdf")
_PHRASES = ("see you at {}", "I am late", "the {} is ready", "buy {} and {}", "call me back", "meet me at the {}",
            "happy birthday", "the {} starts at {}", "bring the {}", "I will be home at {}", "I like the {}",
            "do not forget the {}", "where is my {}", "hello from {}", "the key is under the {}",
            "ask {} about the {}", "pay the {}", "we need more {}",
            "bring {} and {}", "{} and {} are here")  # fmt: skip
_SKIES = ("sunny", "cloudy", "rainy", "snowy", "windy", "foggy", "clear", "stormy", "grey", "dry")
_STATUSES = ("ok", "done", "sent", "set", "saved", "ready", "failed", "queued", "booked", "playing", "on", "running",
             "active", "started", "confirmed", "pending", "rejected", "accepted")  # fmt: skip
# From the usual to the strange.
_CLOCKS = ("{hour}:{minute:02}", "{hour}:{minute:02}", "{hour}:{minute:02}", "{hour:02}:{minute:02}",
           "{hour} {minute:02}", "{hour}.{minute:02}", "{hour}:{minute}", "{hour} {minute}", "{hour}h{minute:02}",
           "hour {hour} minute {minute}", "hour {hour}, minute {minute}", "{hour} hours {minute} minutes",
           "{hour} hours and {minute} minutes", "{hour} {minute:02} hours")  # fmt: skip
_SMALL_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

# Words of wordings, never of values: with them the end of a value could not be told.
NOT_A_VALUE = frozenset((*words.OTHERS, "please", "thanks", "thank", "min", "km", "called", "named", "stock", "shares",
                         "share", "word", "file", "song", "device", "people", "minute", "minutes", "time", "message",
                         "restaurant", "weather", "timer", "alarm", "currency", "reservation"))  # fmt: skip

_NOT_IN_A_TEXT = frozenset(("also", "then", "please", "thanks", "thank", "after", "first", "next", "now"))


def arguments(rng: Random, function: Function) -> tuple[dict[str, Argument], dict[str, str]]:
    """Arguments in the order of the schema, and what stands for each in a request (set_alarm: one, `time`)."""
    if function.name == "set_alarm":
        hour, minute, text = _clock_time(rng)
        return {"hour": hour, "minute": minute}, {"time": text}
    drawn: dict[str, Argument] = {}
    texts: dict[str, str] = {}
    for parameter, kind in function.parameters.items():
        if kind == "integer":
            number = _INTEGERS[parameter](rng)
            drawn[parameter] = number
            texts[parameter] = _number_text(rng, number)
        else:
            texts[parameter] = _STRINGS[function.name, parameter](rng)
            drawn[parameter] = texts[parameter]
    return drawn, texts


def result(rng: Random, function: Function) -> dict[str, Value]:
    """A plausible result: the function's keys in their order; now and then a value is of an unusual type."""
    return {key: _varied(rng, _RESULTS[function.name, key](rng)) for key in function.result}


def value_word(rng: Random) -> str:
    """An open word that no wording holds."""
    while (word := words.open_word(rng)) in NOT_A_VALUE:
        pass
    return word


def _known_or(known: tuple[str, ...], share: float, other: Callable[[Random], str]) -> Callable[[Random], str]:
    return lambda rng: rng.choice(known) if rng.random() < share else other(rng)


def _proper(rng: Random) -> str:
    """A name; now and then two, in lower case or any word."""
    draw = rng.random()
    if draw < 0.55:
        return words.name(rng)
    if draw < 0.67:
        return f"{words.name(rng)} {words.name(rng)}"
    if draw < 0.77:
        return value_word(rng)
    return _english_of(rng, words.NOUNS).capitalize() if draw < 0.88 else _lower_name(rng)


def _single(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.65:
        return words.name(rng)
    return value_word(rng) if draw < 0.82 else _lower_name(rng)


def _lower_name(rng: Random) -> str:
    while (name := words.name(rng).lower()) in NOT_A_VALUE:
        pass
    return name


def _english_of(rng: Random, known: tuple[str, ...]) -> str:
    """One of the words that no wording holds."""
    while (word := rng.choice(known)) in NOT_A_VALUE:
        pass
    return word


def _symbol(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.2:
        return rng.choice(_SYMBOLS)
    return "".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=rng.randint(1, 5))) if draw < 0.7 else value_word(rng)


def _text(rng: Random) -> str:
    """Several words as in a message."""
    if rng.random() < 0.4:
        phrase = rng.choice(_PHRASES)
        return phrase.format(*(value_word(rng) for _ in range(phrase.count("{}"))))
    return " ".join(_text_word(rng) for _ in range(rng.randint(1, 8)))


def _text_word(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.05:
        return str(rng.randint(0, 99))
    while True:
        word = words.any_english(rng) if draw < 0.5 else words.open_word(rng)
        if word.lower() not in _NOT_IN_A_TEXT:
            return word


def _title(rng: Random) -> str:
    if rng.random() < 0.55:
        return " ".join(words.name(rng) for _ in range(rng.choice((1, 2, 2, 3))))
    title = " ".join(value_word(rng) for _ in range(rng.choice((1, 1, 2, 2, 3, 4))))
    return title.title() if title.isalpha() or rng.random() < 0.3 else title


def _file_name(rng: Random) -> str:
    return value_word(rng) + (rng.choice(_EXTENSIONS) if rng.random() < 0.4 else "")


def _path(rng: Random) -> str:
    if rng.random() < 0.4:
        return f"{value_word(rng)}/{value_word(rng)}{rng.choice(_EXTENSIONS)}"
    folders = "".join(value_word(rng) + "/" for _ in range(rng.choice((0, 0, 1, 1, 2, 3))))
    root = rng.choice(("", "", "", "/", "/home/", "./"))
    return root + folders + value_word(rng) + (rng.choice(_EXTENSIONS) if rng.random() < 0.8 else "")


def _device(rng: Random) -> str:
    draw, device = rng.random(), rng.choice(_DEVICES)
    if draw >= 0.6:
        first = _english_of(rng, words.ADJECTIVES if draw < 0.85 else words.NOUNS)
        return f"{first} {device if rng.random() < 0.4 else _english_of(rng, words.NOUNS)}"
    if draw < 0.4:
        return value_word(rng) if draw < 0.28 else device
    return f"{device} {value_word(rng)}" if draw < 0.5 else f"{value_word(rng)} {device}"


def _clock_time(rng: Random) -> tuple[int, int, str]:
    hour = rng.randrange(24)
    minute = rng.randrange(60) if rng.random() < 0.5 else rng.choice((0, 5, 30, rng.randrange(60)))
    draw = rng.random()
    if draw < 0.66:
        clock = _CLOCKS[int(rng.random() ** 1.5 * len(_CLOCKS))]
        return hour, minute, clock.format(hour=hour, minute=minute)
    twelve = hour % 12 or 12
    if draw < 0.74:
        half = rng.choice(("am", " am") if hour < 12 else ("pm", " pm"))
        return hour, minute, f"{twelve}{half}" if minute == 0 else f"{twelve}:{minute:02}{half}"
    if draw < 0.84:
        return hour, 0, rng.choice((f"{hour}", f"{hour} o'clock"))
    if draw < 0.92:
        word = rng.choice(("half", "quarter"))
        return twelve, 30 if word == "half" else 15, f"{word} past {twelve}"
    return twelve, minute, f"{minute} {rng.choice(('', 'minutes '))}past {twelve}"


def _number_text(rng: Random, number: int) -> str:
    return _SMALL_NUMBERS[number - 1] if 1 <= number <= 12 and rng.random() < 0.1 else str(number)


def _spread(low: int, digits: int) -> Callable[[Random], int]:
    """`low` and more, each number of digits as likely."""
    return lambda rng: max(low, rng.randrange(10 ** rng.randint(1, digits)))


def _varied(rng: Random, value: Value) -> Value:
    """The value; sometimes a number as a string or with decimals, a word as a list or with a second word."""
    draw = rng.random()
    if draw > 0.2 or isinstance(value, list):
        return value
    if isinstance(value, str):
        return [value, value_word(rng)] if draw < 0.04 else f"{value} {value_word(rng)}" if draw < 0.12 else value
    return str(value) if draw < 0.03 else round(value + rng.randrange(1, 1000) / 10 ** rng.choice((1, 2, 3)), 3)


def _price(rng: Random) -> float | int:
    whole = rng.randrange(10 ** rng.randint(1, 4))
    return whole if rng.random() < 0.4 else round(whole + rng.randrange(1, 100) / 100, 2)


def _files(rng: Random) -> Value:
    names = words.distinct(rng, _path if rng.random() < 0.5 else _file_name, rng.choice((1, 1, 2, 3)))
    return names if rng.random() < 0.5 else ", ".join(names)


_city = _known_or(_CITIES, 0.35, _proper)
_country = _known_or(_COUNTRIES, 0.35, _proper)
_language = _known_or(_LANGUAGES, 0.5, _single)
_status = _known_or(_STATUSES, 0.6, value_word)

_INTEGERS: Mapping[str, Callable[[Random], int]] = {
    "minutes": _spread(1, 3),
    "amount": lambda rng: rng.randint(2, 999) if rng.random() < 0.5 else _spread(1, 4)(rng),
    "people": lambda rng: rng.randint(1, 20),
}
_STRINGS: Mapping[tuple[str, str], Callable[[Random], str]] = {
    ("get_weather", "city"): _city,
    ("get_time", "city"): _city,
    ("get_stock_price", "symbol"): _symbol,
    ("get_population", "country"): _country,
    ("translate", "word"): value_word,
    ("translate", "language"): _language,
    ("send_message", "person"): _known_or(_PEOPLE, 0.35, _single),
    ("send_message", "text"): _text,
    ("play_song", "title"): _title,
    ("convert_money", "currency"): _known_or(_CURRENCIES, 0.5, value_word),
    ("search_files", "name"): _file_name,
    ("read_file", "path"): _path,
    ("book_table", "restaurant"): _proper,
    ("get_distance", "origin"): _city,
    ("get_distance", "target"): _city,
    ("create_note", "text"): _text,
    ("turn_on", "device"): _known_or(_DEVICES, 0.4, _device),
}
_RESULTS: Mapping[tuple[str, str], Callable[[Random], Value]] = {
    ("get_weather", "sky"): _known_or(_SKIES, 0.6, value_word),
    ("get_weather", "degrees"): lambda rng: rng.randint(-15, 45),
    ("get_time", "time"): lambda rng: f"{rng.randrange(24):02}:{rng.randrange(60):02}",
    ("get_stock_price", "price"): _price,
    ("get_population", "people"): lambda rng: rng.randrange(100, 10 ** rng.randint(3, 9)),
    ("translate", "word"): value_word,
    **{(name, "status"): _status for name in ("send_message", "set_alarm", "set_timer", "play_song", "book_table",
                                              "create_note", "turn_on")},
    ("convert_money", "value"): _price,
    ("search_files", "files"): _files,
    ("read_file", "text"): _text,
    ("get_distance", "km"): _spread(1, 5),
}  # fmt: skip
