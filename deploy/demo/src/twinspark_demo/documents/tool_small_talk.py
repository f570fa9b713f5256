"""Small talk beside tools that none of them serves and that has no answer of its own: jokes, feelings, opinions."""

from random import Random

from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.words import ADJECTIVES, NOUNS, name

_SMALL_TALK = Phrase(
    "{tell me|i want to hear|do you know|give me|make} {a|another|one} {joke|riddle|rhyme|pun|limerick|fun fact|"
    "bedtime story|fairy tale|poem|proverb}{| about {a <noun>|<noun>s|<name>|my <noun>}}{|.|!|, please}",
    "{write|compose|invent} {a|a short|a long|a sad|a love} {poem|rhyme|letter|speech|haiku|essay|verse} {about|for} "
    "{the <noun>|<name>|my <noun>|a <adjective> <noun>}{|.|!}",
    "{make me laugh|cheer me up|entertain me|surprise me|say something nice|say something funny|talk to me|let us talk|"
    "sing something|inspire me|flatter me}{|.|!|, please}",
    "i {am|feel} {so |very |a bit |}{worried|nervous|proud|jealous|excited} {about|because of} {my|the|a} <noun>{|.|!}",
    "i {miss|love|hate|fear|adore} {my <noun>|<name>|<noun>s|the <adjective> <noun>}{|.|!|. What shall I do?}",
    "my <noun> {makes me|made me} {sad|happy|angry|nervous|proud}{|.|!}",
    "{what do you think|what is your opinion|how do you feel|what do you say} {about|of} {my <noun>|<name>|<noun>s|"
    "the <adjective> <noun>}?",
    "do you {like|love|hate|prefer|believe in|care about|remember} {<noun>s|<name>|my <noun>|<adjective> <noun>s}?",
    "what is your {favourite|favorite} {<noun>|colour|book|film|food|animal|song|city|season|number|word}?",
    "{nice|lovely|bad|terrible|strange|cold|beautiful} weather{| today| again}{, isn't it?|, right?|.|!||, do you not "
    "think?}",
    "{it is|it's} {so |really |very |too |}{hot|cold|grey|wet|windy|sunny|dark} {outside|today|here|again}{.|!||, "
    "isn't it?}",
    "{i love|i hate|i like} {the rain|the sun|snow|summer|winter|this weather|the wind|spring|fog}{.|!||. And you?}",
    "{which|what} is {better|nicer|worse}, a <noun> or a {<adjective> |}<noun>?",
    "{is|was} <name> {right|wrong|nice|your friend|a good <noun>|famous|rich}?",
    "{shall|should} i {marry|trust|forgive|visit|call} <name>{| or not}?",
    "{guess|imagine} what {i|we} {did|saw|ate|dreamed}{| today| last night}{.|!||?}",
    "{what shall i|what should i|what do i} {wear|eat|cook|read|do|say}{| today| tonight| with my <noun>}?",
    "{give me|i need} {advice|a tip|an idea|some help|a recipe|a hint} {for|about|with} {my <noun>|a <noun>|<name>}{|"
    ".|!}",
    "{i had|i have had} a {<adjective>|strange} dream about {a <noun>|<name>|<noun>s}{|.|!}",
    "{play chess|play a game|play hide and seek|play cards} with me{|.|!}",
    "{congratulate|comfort|insult|praise|greet} {me|<name>}{|.|!|, please}",
)


def small_talk(rng: Random) -> str:
    """A message with a small or a capital first letter."""
    noun, adjective = (words[int(rng.random() * len(words))] for words in (NOUNS, ADJECTIVES))
    text = _SMALL_TALK.write(rng, noun=noun, adjective=adjective, name=name(rng))
    return text if rng.random() < 0.25 else text[0].upper() + text[1:]
