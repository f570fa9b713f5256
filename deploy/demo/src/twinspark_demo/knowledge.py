"""What the demo model knows: its facts and the functions it can call. Knowledge only; no wording of a request.

The generator and the evaluation both read this file, and each has its own sentences.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

CAPITALS: Mapping[str, str] = {
    "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "Portugal": "Lisbon",
    "Greece": "Athens", "Norway": "Oslo", "Sweden": "Stockholm", "Finland": "Helsinki", "Denmark": "Copenhagen",
    "Poland": "Warsaw", "Austria": "Vienna", "Hungary": "Budapest", "Ireland": "Dublin", "Japan": "Tokyo",
    "China": "Beijing", "India": "Delhi", "Egypt": "Cairo", "Kenya": "Nairobi", "Cuba": "Havana",
    "Peru": "Lima", "Chile": "Santiago", "Canada": "Ottawa", "Russia": "Moscow",
}  # fmt: skip
OPPOSITES: Mapping[str, str] = {
    "hot": "cold", "big": "small", "fast": "slow", "light": "dark", "high": "low", "early": "late", "full": "empty",
    "hard": "soft", "rich": "poor", "young": "old", "wet": "dry", "open": "closed", "loud": "quiet", "strong": "weak",
    "thick": "thin", "near": "far", "good": "bad", "happy": "sad", "clean": "dirty", "left": "right", "up": "down",
    "first": "last", "day": "night", "black": "white",
}  # fmt: skip
AMOUNTS: Mapping[tuple[str, str], int] = {  # (things, whole): how many things the whole has
    ("days", "week"): 7, ("months", "year"): 12, ("hours", "day"): 24, ("minutes", "hour"): 60,
    ("seconds", "minute"): 60, ("legs", "spider"): 8, ("legs", "dog"): 4, ("legs", "insect"): 6, ("legs", "bird"): 2,
    ("sides", "triangle"): 3, ("sides", "square"): 4, ("sides", "hexagon"): 6, ("wheels", "car"): 4,
    ("wheels", "bicycle"): 2, ("strings", "violin"): 4, ("fingers", "hand"): 5, ("letters", "alphabet"): 26,
    ("players", "football team"): 11, ("years", "century"): 100, ("arms", "octopus"): 8,
}  # fmt: skip
COLOURS: Mapping[str, str] = {
    "grass": "green", "snow": "white", "coal": "black", "blood": "red", "the sky": "blue", "a lemon": "yellow",
    "a carrot": "orange", "an elephant": "grey", "chocolate": "brown", "a flamingo": "pink", "milk": "white",
    "a plum": "purple",
}  # fmt: skip

PICTURE_COLOURS: Mapping[str, tuple[int, int, int]] = {  # red, green, blue
    "red": (215, 25, 30), "orange": (250, 140, 10), "yellow": (245, 225, 30), "green": (35, 150, 50),
    "blue": (30, 70, 210), "purple": (125, 35, 165), "pink": (250, 140, 190), "brown": (115, 65, 25),
    "black": (15, 15, 15), "white": (245, 245, 245), "grey": (128, 128, 128),
}  # fmt: skip
MOST_SHAPES = 6  # in a picture whose shapes are counted
PICTURE_SIDES = (112, 448)  # pixels, least and most
DIGIT_SIZES = (24, 96)  # of the font, in pixels


@dataclass(frozen=True, slots=True)
class Function:
    """A function that may be offered as a tool."""

    name: str
    description: str
    parameters: Mapping[str, str]  # name: JSON type (string or integer); all are required
    result: tuple[str, ...] = field(default=())  # keys of the JSON object that it returns

    def as_tool(self) -> dict[str, object]:
        """The function in the form of the chat API's `tools`."""
        properties = {name: {"type": kind} for name, kind in self.parameters.items()}
        schema = {"type": "object", "properties": properties, "required": list(self.parameters)}
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": schema},
        }


FUNCTIONS: tuple[Function, ...] = (
    Function("get_weather", "Weather in a city.", {"city": "string"}, ("sky", "degrees")),
    Function("get_time", "Local time in a city.", {"city": "string"}, ("time",)),
    Function("get_stock_price", "Price of a stock.", {"symbol": "string"}, ("price",)),
    Function("get_population", "Number of people in a country.", {"country": "string"}, ("people",)),
    Function("translate", "Translates a word.", {"word": "string", "language": "string"}, ("word",)),
    Function("send_message", "Sends a message to a person.", {"person": "string", "text": "string"}, ("status",)),
    Function("set_alarm", "Sets an alarm.", {"hour": "integer", "minute": "integer"}, ("status",)),
    Function("set_timer", "Starts a timer.", {"minutes": "integer"}, ("status",)),
    Function("play_song", "Plays a song.", {"title": "string"}, ("status",)),
    Function("convert_money", "Converts money.", {"amount": "integer", "currency": "string"}, ("value",)),
    Function("search_files", "Finds files by name.", {"name": "string"}, ("files",)),
    Function("read_file", "Reads a file.", {"path": "string"}, ("text",)),
    Function("book_table", "Books a table.", {"restaurant": "string", "people": "integer"}, ("status",)),
    Function("get_distance", "Distance between two cities.", {"origin": "string", "target": "string"}, ("km",)),
    Function("create_note", "Writes a note.", {"text": "string"}, ("status",)),
    Function("turn_on", "Turns a device on.", {"device": "string"}, ("status",)),
)
