"""Chat: small talk with fixed answers, and one fixed sentence for whatever the model cannot do."""

from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import order, question, upper_first
from twinspark_demo.documents.turn import Setting, Turn
from twinspark_demo.documents.words import ADJECTIVES, NOUNS, VERBS, english, name, pseudo_word
from twinspark_demo.knowledge import CAPITALS, COLOURS, OPPOSITES

KIND = "chat"
CANNOT = "Sorry, I cannot help with that."
_CANNOT_SHARE, _UNKNOWN_SHARE = 0.35, 0.2

_TALK: tuple[tuple[Phrase, str], ...] = (
    (
        Phrase(
            "{hi|hello|hey|good morning|good evening|good afternoon|greetings|hi there|hello there"
            "|hey there|howdy}{|!|.}",
            "{hi|hello|hey}{,|} {model|twinspark|friend|assistant}{|!|.}",
        ),
        "Hello! How can I help?",
    ),
    (
        Phrase("{hi, |hello, |hello! |}how {are you|are you doing|do you do|is it going|do you feel}{| today}?"),
        "I am fine, thank you.",
    ),
    (
        Phrase(
            "{thanks|thank you|many thanks|thanks a lot|thank you very much|cheers|great, thanks"
            "|thank you so much}{|!|.}"
        ),
        "You are welcome.",
    ),
    (Phrase("{bye|goodbye|see you|see you later|bye bye|farewell|until next time|i have to go}{|!|.}"), "Goodbye!"),
    (Phrase("{good night|sleep well|i am going to bed}{|!|.}"), "Good night!"),
    (
        Phrase(
            "{who|what} are you?",
            "{what is|what's|tell me|say} your name?",
            "{what are you called|which model are you|what model are you|what model is this|who am i talking to}?",
            "{introduce yourself|tell me who you are|tell me about yourself|describe yourself}{.|}",
        ),
        "I am the demo model of Twinspark.",
    ),
    (
        Phrase(
            "what {can|do} you do{| for me}?",
            "{what are you able to do|what are your abilities|what are you good at|how can you help me"
            "|what do you know}?",
            "{what are you for|what can i ask you|what should i ask you|help}{?|}",
        ),
        "I can calculate, count, copy, find codes, rename variables, write JSON and call tools.",
    ),
    (
        Phrase("{are you|you are} {a human|human|a person|a man|a woman|alive|real|a real person}?"),
        "No, I am a small language model.",
    ),
    (
        Phrase(
            "{are you|you are} {a robot|an ai|a machine|a computer|a language model|a model|a bot"
            "|artificial|a program}?"
        ),
        "Yes, I am a small language model.",
    ),
    (
        Phrase("how {big|large|small} are you?", "how many parameters do you have?", "what is your size?"),
        "I have 18 million parameters.",
    ),
    (
        Phrase("{who|which people} {made|built|trained|created|wrote|owns} you?", "where do you come from?"),
        "The Twinspark project trained me.",
    ),
    (Phrase("how old are you?", "when were you {born|made|trained|built}?", "what is your age?"), "I am quite new."),
    (Phrase("where {are you|do you live|do you run|is your home}?", "what do you run on?"), "I run on a server."),
    (
        Phrase(
            "{are you there|do you hear me|can you hear me|are you awake|anybody there|is anybody there}?",
            "{test|testing|ping|is this working}{.||?}",
        ),
        "Yes, I am here.",
    ),
    (
        Phrase(
            "{can you help me|can you help|i need help|i need your help|help me|please help me"
            "|could you help me}{?|.||!}"
        ),
        "Yes. What do you need?",
    ),
    (Phrase("{sorry|i am sorry|excuse me|my mistake|i apologize|oops|i was wrong}{.||!}"), "No problem."),
    (
        Phrase(
            "i {am|feel} {sad|tired|ill|sick|lonely|unhappy|bored|angry|afraid}{| today}{.||!}", "i had a bad day{.|}"
        ),
        "I am sorry to hear that.",
    ),
    (
        Phrase("i {am|feel} {happy|glad|well|fine|good|great}{| today}{.||!}", "i had a {good|great} day{.|!|}"),
        "I am glad to hear that.",
    ),
    (
        Phrase(
            "{you are|you're} {great|good|smart|clever|nice|the best|funny|kind|helpful}{.||!}",
            "{good job|well done|great work|nice work|very good|excellent|perfect|i like you|good answer|nice}{.||!}",
        ),
        "Thank you!",
    ),
    (
        Phrase(
            "{you are|you're} {bad|stupid|silly|slow|wrong|boring|useless}{.||!}",
            "{that is wrong|that is not right|wrong|wrong answer|bad answer|that was wrong|i do not like you}{.||!}",
        ),
        "I am sorry.",
    ),
    (Phrase("{ok|okay|i see|all right|fine|understood|got it|sure|good to know|interesting|cool}{.||!}"), "All right."),
    (
        Phrase("are you {ready|prepared}{| to start| for a task| to work}?", "{can|shall|may} we {start|begin}?"),
        "Yes, I am ready.",
    ),
    (Phrase("{nice|good|pleased|glad} to meet you{.||!}"), "Nice to meet you too."),
    (Phrase("have a {nice|good|great|lovely} {day|evening|weekend|time|night}{.||!}", "take care{.|!|}"), "You too!"),
    (
        Phrase(
            "do you {sleep|eat|drink|dream|feel pain|have feelings|have friends|have a body|get tired"
            "|have a family|go out}?"
        ),
        "No, I am only a model.",
    ),
    (
        Phrase(
            "{can|do} you make {mistakes|errors}?", "are you {ever|sometimes|always} {wrong|right}?", "can i trust you?"
        ),
        "I am small and make mistakes.",
    ),
    (
        Phrase(
            "{can|do} you speak {english|any english}?",
            "{can you|are you able to} {count|calculate|copy a text|copy text|repeat words|add numbers"
            "|multiply|rename variables|write json|call tools|use tools|find codes}?",
        ),
        "Yes, I can.",
    ),
    (
        Phrase(
            "{can you|are you able to} {fly|cook|sing|dance|swim|drive|drive a car|draw|paint|walk"
            "|play the piano|see the future}?",
            "do you speak {french|german|spanish|chinese|italian|japanese|latin|russian}?",
        ),
        "No, I cannot.",
    ),
    (Phrase("what do you {like|love|enjoy}{| most| doing}?", "what is your {hobby|passion}?"), "I like short tasks."),
)

_TOPIC = "{<n>s|the <n>|a <a> <n>|a <n> and a <m>|<p>|the history of the <n>|<p> and the <n>}"
_ORDERS = Phrase(
    f"{{write|compose|make up|invent|create}} {{a|a short|a long|a funny}} {{poem|story|song|novel|essay"
    f"|letter|joke|speech|play}} about {_TOPIC}",
    "{tell|read} me a {joke|story|secret|fairy tale|riddle}{| about the <n>}",
    f"{{explain|describe|teach me|tell me everything about|write a report on|give me a lecture on}} {_TOPIC}",
    "{draw|paint|sketch|design} {a|the} <a> <n>",
    "{explain|teach me} how to <v> a <n>",
    "{recommend|suggest|find me|choose} a {book|film|song|hotel|restaurant|present|game|name} for {<p>"
    "|my <n>|a <a> <n>}",
    "{buy|sell|order|cook|repair|clean|bring} {me |}a <a> <n>",
    "{plan|organize|prepare} {my|a} {trip|party|week|wedding|holiday} {with <p>|near the <n>|to <p>}",
    "{summarize|review|criticize} the {book|film|novel|play} {of|about} {<p>|the <n>}",
    "{predict|guess} {the winner|the future|the price of the <n>|tomorrow's news}",
    "{show me|find} a {picture|photo|video} of {a|the} <n>",
)
_QUESTIONS = Phrase(
    "who {invented|discovered|built|painted|wrote|stole|owns} the <n>?",
    "who {is|was} {<p>|the {king|president|queen|mayor|captain} of <p>}?",
    "{why|when|how} {does|did|should|can} {a|the} <n> <v>?",
    "what {does|did} the <n> {of <p> |}<v>?",
    "where {is|can i find|can i buy|was} {the|a} <n>{| of <p>}?",
    "what is {the meaning of life|the meaning of <e>|love|the best <n>|a <n>|the point of a <n>|the news"
    "|your opinion of <p>}?",
    "what {do you think|is your opinion|is known} about {the <n>|<p>}?",
    "{which|what} <n> is the {most <a>|best|largest|oldest}?",
    "how {do i|do you|does one|can i} <v> {a|the} <n>?",
    "is {a|the} <n> {<a>|more <a> than a <m>}?",
    "{should|can|may} i <v> {my|the} <n>?",
    "how {far|deep|old|heavy|expensive|tall} is the <n>{| of <p>}?",
    "what {will happen|happened|is new} {tomorrow|in the <n>|to <p>|last year}?",
    "{when|where} was {<p>|the <n>} {born|built|found}?",
)
_UNKNOWN = Phrase(
    "{what is|what's|tell me|do you know} the capital of <c>?",
    "capital of <c>?",
    "{what is|what's} the opposite of <e>?",
    "{what|which} {colour|color} is {a|the} <n>?",
    "how many <n>s does a <m> have?",
)
_OTHER_COUNTRIES = (
    "Brazil", "Mexico", "Turkey", "Iran", "Iraq", "Vietnam", "Thailand", "Nigeria", "Ghana", "Morocco", "Belgium",
    "Romania", "Bulgaria", "Croatia", "Iceland", "Colombia", "Argentina", "Bolivia", "Ukraine", "Israel", "Nepal",
    "Mongolia", "Jamaica", "Ethiopia", "Uganda", "Australia", "New Zealand", "South Korea", "Pakistan", "Indonesia",
    "Switzerland",
)  # fmt: skip
_KNOWN = frozenset(
    (*CAPITALS, *OPPOSITES, *OPPOSITES.values(), *(thing.split()[-1] for thing in COLOURS), "legs", "wheels", "sky")
)


def make(rng: Random, budget: int) -> Conversation:
    """One exchange; `budget` is far from being reached."""
    return Setting.draw(rng).conversation(KIND, (turn(rng),))


def turn(rng: Random) -> Turn:
    """Small talk, or a request that the model cannot meet."""
    if rng.random() < _CANNOT_SHARE:
        return cannot(rng)
    phrase, answer = _TALK[int(rng.random() * len(_TALK))]
    request = phrase.write(rng)
    return Turn(request if rng.random() < 0.25 else upper_first(request), answer)


def cannot(rng: Random) -> Turn:
    """A request for something that the model was never taught."""
    slots = {
        "n": _unknown(rng, NOUNS),
        "m": _unknown(rng, NOUNS),
        "a": ADJECTIVES[int(rng.random() * len(ADJECTIVES))],
        "v": VERBS[int(rng.random() * len(VERBS))],
        "p": name(rng),
        "e": _unknown_word(rng),
        "c": _country(rng),
    }
    draw = rng.random()
    if draw < _UNKNOWN_SHARE:
        return Turn(question(rng, _UNKNOWN.write(rng, **slots)), CANNOT)
    if draw < 0.6:
        return Turn(order(rng, _ORDERS.write(rng, **slots)), CANNOT)
    return Turn(question(rng, _QUESTIONS.write(rng, **slots)), CANNOT)


def _unknown(rng: Random, words: tuple[str, ...]) -> str:
    while True:
        word = words[int(rng.random() * len(words))]
        if word not in _KNOWN:
            return word


def _unknown_word(rng: Random) -> str:
    word = english(rng)
    return word if word not in _KNOWN else pseudo_word(rng)


def _country(rng: Random) -> str:
    if rng.random() < 0.7:
        return _OTHER_COUNTRIES[int(rng.random() * len(_OTHER_COUNTRIES))]
    return pseudo_word(rng).capitalize()
