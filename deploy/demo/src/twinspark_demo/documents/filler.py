"""Filler: sentences of no use, with names, numbers and codes of things, so that none of these stands out."""

from random import Random

from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import upper_first
from twinspark_demo.documents.words import ADJECTIVES, NOUNS, VERBS, code, name

_MODAL = "{can|will|must|may|should|could|cannot|will not|did not|does not|would never|might}"
_PLAIN = Phrase(
    f"the <a> <n> {_MODAL} <v> the <m>.",
    f"the <n> {_MODAL} <v>.",
    f"{{a|every|no|some|this|that|each}} <n> {_MODAL} <v> {{the|a|its|another}} <m>.",
    f"{{we|they|you|people|the children|my parents|both of them}} {_MODAL} <v> the <a> <n>.",
    "{nobody knows|everybody knows|it is unclear|few remember|somebody asked} why the <n> {is|was|looked} <a>.",
    "when the <n> is <a>, the <m> {will|may|must} <v>.",
    "{please |}{do not|never|always} <v> the <a> <n>{!|.}",
    "a <n> without a <m> is {like a <o> without a <n>|rather <a>|never <a>}.",
    "the <n> {is|was|seems|became|stayed} <a>{, but| and|, so} the <m> {is|was} not.",
    "{in the evening|later|yesterday|in spring|every winter|at noon|long ago}, the <a> <n> began to <v>.",
    "between the <n> and the <m> {stands|lies|was|hides} a <a> <o>.",
    "{why|how|when} {did|does|should} the <n> <v> the <m>?",
    "{it is|it was} <a> to <v> a <n> {in|near|behind|under|beside} the <m>.",
    "some say that the <n> {can|will|must} <v>{| once more| again}; others {prefer|trust|like} the <m>.",
    "the <n>, the <m> and the <o> {are|were} {all |}<a>.",
)
_NUMBERED = Phrase(
    "it takes <d> {minutes|hours|days|weeks} to <v> the <n>.",
    "there are <d> steps from the <n> to the <m>.",
    "in the year <y> the <n> was <a>.",
    "the <a> <n> costs <d> coins{| and weighs <y> grams}.",
    "room <d> is {next to|above|below|behind} the <n>.",
    "page <d> shows a <a> <n>.",
    "the <n> has the number <c>.",
    "the label on the <n> {says|reads} <c>.",
)
_NAMED = Phrase(
    f"<p> {_MODAL} <v> the <a> <n>.",
    f"<p> and <q> {_MODAL} <v> the <n>.",
    "<p> likes to <v> {in|near|behind|with} the <n>.",
    "<p> {lives|works|waits} {near|behind|above} the <a> <n>.",
    "<p> is {<a>|older than <q>|a friend of <q>|the owner of the <n>}.",
    "<p> asked <q> to <v> the <n>.",
    "the <n> of <p> is <a>.",
    "<p> has lived near the <n> for <d> years.",
    "<p>'s <n> {is|was|will be} <a>.",
    "<p> {has|bought|sold|found|lost} <d> {coins|books|apples|lamps|tickets|stamps}.",
)
_NAMED_AT_LENGTH = Phrase(  # in the words that codes are told with
    "<w>{<p>|the <a> <p>|our <a> <p>|my friend <p>|the <o> <p>} "
    "{remembers|keeps|carries|guards|likes|hides|uses|forgot|knows|was told about|dreams of|owns|wrote about|asks for} "
    "{the|a|another|every} {<a> |}<n><e>.",
    "<w>the <n> of {<p>|the <a> <p>} {opens|is <a>|needs a <m>|belongs to <q>|was sold|has a <a> <m>}<e>.",
    "{when|if|whenever} you {see|meet|need|visit} <p>, {<v>|take the <n>|remember the <m>|do not <v>}<e>.",
    "{whoever|everyone who} {sees|asks for|needs|helps} <p> {gets a <n>|may <v>|must <v> the <a> <n>}<e>.",
    "to {open|find|<v>} the <n> of <p>, {you need a <m>|ask <q>|<v> the <a> <m>}<e>.",
)
_WHEN = Phrase(
    "{|||since Monday, |this year, |after the <n>, |once again, |every <n>, |behind the <n>, |the <n> says that }"
)
_END = Phrase("{|||, said the <n>| and nothing else|, of course| at night| near the <n>| since Friday}")
_ABOUT_CODES = Phrase(
    "{nobody asked|everybody asked|it is too late to ask} {for the code|about codes}.",
    "the <n> has a code{, but nobody knows it| that nobody remembers}.",
    "{codes are <a>|a code is like a <n>|write every code down|a good code is <a>}.",
)


def sentence(rng: Random, names: list[str]) -> str:
    """A sentence with a stop; a person in it has one of `names`, which have at least two."""
    draw = rng.random()
    if draw < 0.62:
        phrase = _PLAIN
    elif draw < 0.75:
        phrase = _NUMBERED
    else:
        phrase = (_NAMED if draw < 0.88 else _NAMED_AT_LENGTH) if draw < 0.98 else _ABOUT_CODES
    noun = NOUNS[int(rng.random() * len(NOUNS))]
    first = int(rng.random() * len(names))
    return upper_first(
        phrase.write(
            rng,
            a=ADJECTIVES[int(rng.random() * len(ADJECTIVES))],
            n=NOUNS[int(rng.random() * len(NOUNS))],
            m=NOUNS[int(rng.random() * len(NOUNS))],
            o=NOUNS[int(rng.random() * len(NOUNS))],
            v=VERBS[int(rng.random() * len(VERBS))],
            d=str(2 + int(rng.random() * 98)),
            y=str(1000 + int(rng.random() * 1050)),
            c=code(rng) if phrase is _NUMBERED else "",
            p=names[first],
            q=names[first - 1],
            w=_WHEN.write(rng, n=noun) if phrase is _NAMED_AT_LENGTH else "",
            e=_END.write(rng, n=noun) if phrase is _NAMED_AT_LENGTH else "",
        )
    )


def names(rng: Random, others: list[str]) -> list[str]:
    """Names of people in the filler: new ones, and a few of `others`."""
    found = [name(rng) for _ in range(24)]
    if others and rng.random() < 0.5:
        found += [others[int(rng.random() * len(others))] for _ in range(3)]
    return found
