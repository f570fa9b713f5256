"""Tools are offered, and none fits: the request is for another function, or needs none."""

from dataclasses import replace
from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.kinds import arithmetic, chat, facts
from twinspark_demo.documents.tool_calls import NO_TOOL, held, offer_without
from twinspark_demo.documents.tool_small_talk import small_talk
from twinspark_demo.documents.tool_stories import request
from twinspark_demo.documents.turn import Setting, Turn
from twinspark_demo.knowledge import FUNCTIONS

KIND = "tool_none"
_UNMET_SHARE = 0.6


def make(rng: Random, budget: int) -> Conversation:
    """One request and its reply in words; `budget` is far from being reached."""
    setting = Setting.draw(rng)
    if rng.random() < _UNMET_SHARE:
        function = rng.choice(FUNCTIONS)
        text, _ = request(rng, function)
        turn, tools = Turn(text, NO_TOOL), offer_without(rng, function)
    else:
        turn, tools = _ordinary(rng, setting.enable_thinking), offer_without(rng, None)
    return held(setting, KIND, turn.messages(), tools)


def _ordinary(rng: Random, thinks: bool) -> Turn:
    """A request that needs no tool; one that the model cannot meet has the same reply as one without its tool."""
    draw = rng.random()
    if draw < 0.4:
        return facts.turn(rng) if draw < 0.2 else arithmetic.turn(rng, thinks)
    if draw < 0.65:
        return Turn(small_talk(rng), NO_TOOL)
    turn = chat.turn(rng)
    return replace(turn, answer=NO_TOOL) if turn.answer == chat.CANNOT else turn
