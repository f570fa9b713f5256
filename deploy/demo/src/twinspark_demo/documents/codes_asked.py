"""Questions for a name's code: half of them plain, the others composed, some short ones behind another question."""

from random import Random

from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import order, plain, question, upper_first
from twinspark_demo.documents.remarks import with_remark
from twinspark_demo.documents.words import NOUNS

PLAIN_SHARE = 0.5
_SHORT_SHARE, _REMARK_SHARE = 0.3, 0.12

_CODE = "{code|code|code|code|secret code|access code|pass code|number|key|password|secret|pin}"
_OF = f"{{the {_CODE} of <n>|<n>'s {_CODE}|the {_CODE} for <n>|the {_CODE} that belongs to <n>}}"
_WHICH = f"{{which {_CODE} <n> has|what the {_CODE} of <n> is|which {_CODE} belongs to <n>|what <n>'s {_CODE} is}}"
_TEXT = "{text|notes|list|lines|sentences|text above|notes above|list above|text before|story|page|document}"
_LOOK = f"{{look through|search|read|check|go through|scan|look at|use|study}} {{the|my|these|this}} {_TEXT}{{| again}}"
_SOMEBODY = "{my <s>|somebody|someone|the <s>|our <s>|a friend|my boss|everybody|a <s>|my brother}"
_QUESTION = Phrase(
    f"{{what is|what's|what was}} the {_CODE} {{of|of|for|that belongs to}} <n>?",
    f"{{what is|what's|what was}} <n>'s {_CODE}?",
    f"{{which|what}} {_CODE} {{belongs to <n>|does <n> have|does <n> use|was given to <n>|is <n>'s|has <n>}}?",
    f"{{which|what}} {_CODE} did <n> {{have|get|use|receive|take|choose|keep}}?",
    f"{{do you know|do you remember|can you find|can you see|did you see|did you read}} {_OF}?",
    f"{{according to|in|from}} the {_TEXT}, {{what is {_OF}|which {_CODE} does <n> have|what was {_OF}}}?",
    f"{{the {_CODE} of|the {_CODE} for|{_CODE} of|{_CODE} for}} <n>{{?|?|:|.}}",
    f"<n>'s {_CODE}{{?|?|:|, please.}}",
    f"{{i need|i want|i am looking for|i would like|i have to have}} {_OF}{{.||, please.}}",
    f"what {_CODE} is {{given for|assigned to|written for|said to belong to|there for|mentioned with|next to}} <n>?",
    f"<n> {{asks for|needs|forgot|lost|wants|cannot find|does not know}} the {_CODE}{{.|, what is it?|.}}",
    f"<n> {{asks for|needs|forgot|lost|wants|cannot find}} {{its|the|that}} {_CODE}, {{what|which one}} is it?",
    f"i {{forgot|lost|cannot find|do not remember|do not know|cannot remember|missed}} {_OF}{{.||, what is it?}}",
    f"{{who|does anybody|does anyone|can anybody}} {{knows|know|tell me|remember|find}} {_OF}?",
    f"what {{was|is}} {_OF} {{again|once more|then}}?",
    f"{{which one|which of the codes|which of them|what|which code}} is {{<n>'s|{_OF}|the one of <n>|for <n>}}?",
    f"{_SOMEBODY} {{wants to know|asks for|needs|asked for|is asking for|has to know|forgot|lost|wants}} {_OF}{{.|.|}}",
    f"{_SOMEBODY} {{wants to know|asks|asked me|is asking|has to know}} {_WHICH}{{.|.|}}",
    f"you {{read|saw|know|have seen}} {_OF}{{, right|, did you not|}}? {{what|which}} {{is|was}} it?",
    f"{{think of|take|now|look at|about|as for|regarding|concerning}} <n>{{:|,}} {{what|which}} is the {_CODE} of <n>?",
    f"<n>, <n>, {{what|which}} {{is|was}} {{the|your}} {_CODE}?",
    f"where is <n>? i {{need|want|forgot}} {{<n>'s|the}} {_CODE}.",
    f"there {{is|was}} {{a|one}} {_CODE} {{for|of|with|beside}} <n>{{, which one| in the {_TEXT}|, what is it}}?",
    f"{{may i|could i|can i}} {{have|get|see|know|hear}} {_OF}{{, please|}}?",
    f"{{could|would|can|will}} you {{please |kindly |}}{{tell me|give me|show me|find|look up}} {_OF}?",
    f"{{i wonder|i ask myself|i would like to know|i want to know|i have to know|let me know}} {_WHICH}{{.|}}",
    f"{{do you know|can you tell me|can you say|do you remember}} {_WHICH}?",
    f"{{the {_TEXT}|one of the {{sentences|lines}}}} {{says|gives|names}} {_OF}{{: what|, what|. What}} is it?",
    f"if {{i|we|you}} {{meet|see|need|look for|want}} <n>, {{which|what}} {_CODE} {{is right|do i need|is it}}?",
    f"{{what|which {_CODE}}} {{do you find|is written|is noted|stands|is given}} {{for|about|beside|with}} <n>?",
    f"what {{does|did|must|should}} <n> {{use|have|type|say|enter}} as {{a |the |}}{_CODE}?",
    f"what belongs to <n>{{?|, which {_CODE}?}}",
)
_ORDER = Phrase(
    f"{{tell me|give me|say|find|find me|look up|write|name|return|state|show|show me}} {_OF}{{| in the {_TEXT}}}",
    f"{{tell me|say|find out|write down|show me}} {_WHICH}",
    f"{_LOOK} and {{tell|give|show|find}} me {_OF}",
    f"{_LOOK} and {{tell me|find out|say|write}} {_WHICH}",
    f"{{find|look for|search for}} <n> {{in the {_TEXT} |}}and {{tell|give|show}} me the {_CODE}",
    f"{{answer|reply}} with {_OF}",
    f"{{repeat|copy|extract|type|remind me of|help me find|look for|recall|pick|report}} {_OF}",
    f"{{tell|give|send|show}} <n> {{the right|the|<n>'s}} {_CODE}",
)
_PLAIN = Phrase(
    "what is the code of <n>?",
    "what is the code of <n>?",
    "what is the code for <n>?",
    "which code belongs to <n>?",
    "what is <n>'s code?",
    "which code does <n> have?",
    "tell me the code of <n>{.|}",
    "give me the code of <n>{.|}",
    "what code does <n> have?",
    "what is the code that belongs to <n>?",
    "code of <n>?",
)
_SHORT = Phrase(
    "{and|and|what about|and what about|how about|and for|and of|now} <n>{?|?|}", "<n>?", "and {<n>'s|<n>'s code}?"
)


def asked(rng: Random, name: str, short: bool) -> str:
    """A question for the code; a `short` one may lean on the question before."""
    if rng.random() < PLAIN_SHARE:
        text = _PLAIN.write(rng, n=name)
        if rng.random() < _REMARK_SHARE:
            return upper_first(with_remark(rng, text, may_change_case=True))
        return plain(rng, text)
    if short and rng.random() < _SHORT_SHARE:
        return upper_first(_SHORT.write(rng, n=name))
    noun = NOUNS[int(rng.random() * len(NOUNS))]
    if rng.random() < 0.7:
        return question(rng, _QUESTION.write(rng, n=name, s=noun))
    return order(rng, _ORDER.write(rng, n=name))
