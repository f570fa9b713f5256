"""Sentences that give a name's code: plain ones, and composed ones with words and clauses drawn around them."""

from collections.abc import Set
from random import Random

from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.words import ADJECTIVES, NOUNS, VERBS

PLAIN_SHARE = 0.4
_LINE_SHARE, _BEFORE_SHARE, _AFTER_SHARE, _OPEN_VERB_SHARE = 0.06, 0.3, 0.25, 0.12

_CODE = "{code|code|code|code|secret code|access code|pass code}"
_PLAIN = (
    Phrase("the code of <n> is <c>."),
    Phrase("the code of <n> is <c>."),
    Phrase(f"the {_CODE} of <n> is <c>."),
    Phrase("<n>'s code is <c>."),
    Phrase(f"the {_CODE} for <n> is <c>."),
    Phrase("<n> has the code <c>."),
    Phrase("<c> is the code of <n>."),
    Phrase("for <n> the code is <c>."),
    Phrase("<n> uses {the code|code} <c>."),
    Phrase("{remember|note|do not forget} that {<n>'s code is|the code of <n> is|<n> has the code} <c>."),
    Phrase("code of <n>: <c>."),
    Phrase("<n>: <c>."),
    Phrase("<n> has been given the code <c>."),
    Phrase("{the code|code} <c> belongs to <n>."),
    Phrase("the code that {belongs to <n>|<n> uses|<n> was given|opens <n>'s door} is <c>."),
    Phrase("<n> was {given|assigned|sent} the code <c>."),
    Phrase("{to <n> belongs|<n> owns|<n> got|<n> chose} the code <c>."),
    Phrase("{note|important|by the way}: {the code of <n> is|<n>'s code is|<n> has code} <c>."),
    Phrase("{somebody said|it is known|we know} that <n> has the code <c>."),
)
_WORD = "{code|code|code|number|key|password|secret|pin|secret code|access code|word}"
_THE = f"{{|||the {_WORD} |a {_WORD}, |{_WORD} |only |just |the <a> {_WORD} |this {_WORD}: }}"
_WHO = "{<n>|<n>|<n>|<a> <n>|the <a> <n>|our <a> <n>|my <s> <n>|the <s> <n>|{Mr|Mrs} <n>|my friend <n>|poor <n>}"
_ENTER = "{type|use|say|press|enter|show|write|try|take|dial|whisper|choose|remember|call|send}"
_HAPPENS = "{sees|wants|needs|finds|asks for|meets|looks for|calls|visits|helps|follows|writes to}"
_VERB = Phrase(
    *("remembers", "types", "keeps", "wrote down", "carries", "guards", "likes", "hides", "changed to", "was told"),
    *(
        "always uses",
        "never forgets",
        "knows",
        "learned",
        "received",
        "picked",
        "sings",
        "whispers",
        "shouts",
        "spells",
    ),
    *(
        "dreams of",
        "owns",
        "holds",
        "answers to",
        "goes by",
        "is known by",
        "signs with",
        "logs in with",
        "enters with",
    ),
    *("opens everything with", "pays with", "greets people with", "listens to", "does not tell anyone", "needs"),
    *("will not lose", "would never share", "cannot forget", "stored", "saved", "printed", "painted", "copied"),
    *("repeats", "got", "took", "found", "made", "prefers", "trusts", "still has", "now has", "only has", "works with"),
    *("comes with", "stands for", "insists on", "swears by", "switched to", "settled on", "is listed under", "says"),
    *("is marked", "goes with", "must enter", "has to say", "was handed", "was shown", "asked for", "invented", "put"),
    *("decided on", "cares for", "looks after", "bought", "won", "inherited", "wears", "reads", "tapped in", "sent us"),
)
_OPEN_VERB = Phrase(
    "{can|will|must|may|should|could|cannot|will not|did not|would never|likes to|began to|used to} <v>"
)
_CORES = (
    *(f"{_WHO} <verb> {_THE}<c>",) * 7,
    *(f"{_WHO} <verb> <c>",) * 3,
    f"<c> is {{what|the {_WORD} that|the one that|all that|exactly what}} {_WHO} <verb>",
    f"the {_WORD} {{that |}}{_WHO} <verb> is <c>",
    f"what {_WHO} <verb> is {_THE}<c>",
    f"it {{is|was}} <c> that {_WHO} <verb>",
    f"{{with|by means of|thanks to}} {_THE}<c> {_WHO} {{opens|locks|finds|starts|enters|reaches}} the {{<a> |}}<s>",
    f"{_WHO} {{opens|locks|starts|unlocks|marks|labels|enters|protects}} the {{<a> |}}<s> with {_THE}<c>",
    f"{_THE}<c> {{opens|locks|starts|protects|belongs on}} the {{<a> |}}<s> of {_WHO}",
    f"to {{open|close|start|enter|find|use|<v>}} the {{<a> |}}<s> of {_WHO}, {_ENTER} {_THE}<c>",
    f"{_ENTER} {_THE}<c> to {{open|start|enter|<v>}} the <s> of <n>",
    f"{{when|if|whenever|as soon as|once}} you {{see|meet|need|want|visit|call|reach|hear}} {_WHO}, {_ENTER} {_THE}<c>",
    f"{_ENTER} {_THE}<c> {{when|if|whenever|before}} you {{see|meet|need|want|visit|call}} {_WHO}",
    f"{{whoever|everyone who|anyone who}} {_HAPPENS} {_WHO} {{gets|needs|hears|must say|has to type|reads}} {_THE}<c>",
    f"the {{<a> |}}<s> of {_WHO} {{opens with|needs|shows|says|asks for|is locked with|bears|has}} {_THE}<c>",
    f"{{ask for|look for|think of|for|with|as for|regarding}} {_WHO}{{, it is|: |, take|, we use|, we have}} {_THE}<c>",
    f"the <s> {{gave|sold|sent|showed|told|handed}} {_THE}<c> to {_WHO}",
    f"{{we|they|i|the <s>|my parents}} {{gave|sent|showed|told|assigned|handed}} {_WHO} {_THE}<c>",
    "{<n> and <c>|<c> and <n>} {belong together|go together|are a pair|match|stand side by side}",
    f"{{next to|beside|under|behind|with|above|opposite}} {{the name |}}<n> {{stands|is|we wrote|comes}} {_THE}<c>",
    f"{{only|nobody but|no one except|just}} {_WHO} {{knows|may use|has|reads|understands|can type}} {_THE}<c>",
    f"{_THE}<c> {{was given to|was made for|is kept by|came from|is for|means|is used by}} {_WHO}",
    f"{{if|when}} {_WHO} <verb> {{anything|a <s>|something}}, it {{is|will be|must be}} <c>",
    f"{_WHO}, {{who|a <s> that|as <a> as a <s>, who}} {{can <v>|is <a>|likes the <s>}}, <verb> {_THE}<c>",
    f"<n>'s {{new |old |<a> |own |}}{_WORD} {{is|was set to|reads|became|is now|remains|has been}} <c>",
    f"the {{new |old |<a> |}}{_WORD} {{of|for|from|that goes with}} {_WHO} {{is|reads|became|is now|remains}} <c>",
)
_BEFORE = Phrase(
    "{since|on|until|before|after|from} {Monday|Tuesday|Friday|Sunday|last week|yesterday|noon|the war|the <s>}, ",
    "{this|last|every|each} {year|week|month|morning|winter|summer|time|<s>}, ",
    "{today|now|nowadays|once again|as always|for years|in the end|at last|usually|meanwhile|at work|at home}, ",
    "{in|near|behind|after|without|beside|because of|despite} {the|a|our} {<a> |}<s>, ",
    "{as|although|because|while|when} the <s> {is|was|became} <a>, ",
    "{if|when|once} {you|they|we} <v> the <s>, ",
    "{the <s> says|we know|i heard|it is said|people say|i am sure|somebody told me|it is true|they say} that ",
    "{note|listen|important|by the way|a hint|for your notes|attention|in short}: ",
)
_AFTER = Phrase(
    ", {said|wrote|explained|thought} the {<a> |}<s>",
    " {and nothing else|once again|every day|at night|again and again|by heart|for now|all the time|as well}",
    ", {of course|it seems|they say|i think|you know|as we heard|that is all|not a <s>|without a <s>}",
    " {in|near|behind|under|beside|before|after|with} {the|a|every} {<a> |}<s>",
    ", {but|and|so} the <s> {is|was|can be} <a>",
    ", {and|but} {nobody|everybody|the <s>} {knows it|forgot it|can <v> it|likes it}",
    " {because|although|while|since|whenever} the <s> {is|was|looks} <a>",
    " since {Monday|Friday|yesterday|the <s>|last year|spring}",
)
_LINES = Phrase(
    *("<n> = <c>", "<n>: <c>", "<n> -> <c>", "<n> - <c>", "<n> => <c>", "<n> (<c>)", "<c> (<n>)", "<c> = <n>"),
    *(f"{_WORD} {{of|for}} <n>: <c>", f"<n>, {_WORD}: <c>", f"{_WORD} <n> = <c>", f"<n> / {_WORD} / <c>"),
    *("<c> for <n>", "name <n>, {code|key|number} <c>", "[<n>] <c>", "<n>, <c>", "<c>: <n>"),
)


class Teller:
    """Writes sentences that hold one of the names, its code, and no other word that is one of `names`."""

    def __init__(self, rng: Random, names: Set[str]) -> None:
        self._rng = rng
        self._taken = {name.lower() for name in names}
        self._own = _one(rng, _PLAIN) if rng.random() < 0.3 else None  # of most plain sentences of a document
        self._frame = _one(rng, _COMPOSED) if rng.random() < 0.15 else None
        self._share = PLAIN_SHARE if rng.random() < 0.7 else float(rng.random() < PLAIN_SHARE)

    def plain(self, name: str, code: str) -> str:
        """A short sentence with a stop; its first letter is small, unless the name stands first."""
        return (self._own or _one(self._rng, _PLAIN)).write(self._rng, n=name, c=code)

    def sentence(self, name: str, code: str) -> str:
        """A sentence with a stop; its first letter is small, unless a name stands first."""
        rng = self._rng
        if rng.random() < self._share:
            return self.plain(name, code)
        if rng.random() < _LINE_SHARE:
            return _LINES.write(rng, n=name, c=code) + "."
        words = {"n": name, "c": code, "s": self._word(NOUNS), "a": self._word(ADJECTIVES), "v": self._word(VERBS)}
        words["verb"] = (_OPEN_VERB if rng.random() < _OPEN_VERB_SHARE else _VERB).write(rng, **words)
        text = (self._frame or _one(rng, _COMPOSED)).write(rng, **words)
        if rng.random() < _BEFORE_SHARE:
            text = _BEFORE.write(rng, **words | {"s": self._word(NOUNS)}) + text
        if rng.random() < _AFTER_SHARE:
            text += _AFTER.write(rng, **words | {"s": self._word(NOUNS)})
        return text + (".", ".", ".", ".", "!")[int(rng.random() * 5)]

    def _word(self, words: tuple[str, ...]) -> str:
        while True:
            found = words[int(self._rng.random() * len(words))]
            if found not in self._taken:
                return found


_COMPOSED = tuple(Phrase(core) for core in _CORES)


def _one(rng: Random, phrases: tuple[Phrase, ...]) -> Phrase:
    return phrases[int(rng.random() * len(phrases))]
