"""Proto messages to and from the service's own types; the only module beside the servicer that knows the messages."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType

from twinspark.grammar.v1 import grammar_pb2 as pb
from twinspark_grammar.errors import InvalidFieldError
from twinspark_grammar.masks import MaskParams, WindowMasks
from twinspark_grammar.schema.enforcement import Unenforced
from twinspark_grammar.source import GrammarKind, GrammarSource
from twinspark_grammar.vocabulary import END_OF_THINKING, Vocabulary

KINDS = MappingProxyType(
    {
        pb.GRAMMAR_KIND_JSON_SCHEMA: GrammarKind.JSON_SCHEMA,
        pb.GRAMMAR_KIND_JSON_OBJECT: GrammarKind.JSON_OBJECT,
        pb.GRAMMAR_KIND_REGEX: GrammarKind.REGEX,
        pb.GRAMMAR_KIND_EBNF: GrammarKind.EBNF,
        pb.GRAMMAR_KIND_CHOICE: GrammarKind.CHOICE,
        pb.GRAMMAR_KIND_STRUCTURAL_TAG: GrammarKind.STRUCTURAL_TAG,
        pb.GRAMMAR_KIND_TOOL_CALLS: GrammarKind.TOOL_CALLS,
    }
)
STARTS = (pb.MASK_START_UNSPECIFIED, pb.MASK_START_AT_ONCE, pb.MASK_START_AFTER_THINKING)
MOST_ROWS = 1 << 20
"""Largest vocabulary of a model."""
MOST_DRAFTS = 64
"""In one window."""


@dataclass(frozen=True, slots=True)
class OpenedMask:
    """What a MaskOpen asks for."""

    handle: str
    source: GrammarSource
    params: MaskParams


def source_from_proto(message: pb.Grammar) -> GrammarSource:
    """Give kind and text. Raises InvalidFieldError."""
    kind = KINDS.get(message.kind)
    if kind is None:
        raise InvalidFieldError("grammar.kind", "no such kind")
    return GrammarSource(kind, message.source)


def open_from_proto(message: pb.MaskRequest, vocabulary: Vocabulary) -> OpenedMask:
    """Check the first message of a stream. Raises InvalidFieldError."""
    if message.WhichOneof("command") != "open":
        raise InvalidFieldError("open", "the first message of a stream must hold it")
    opened = message.open
    size = opened.vocabulary_size
    if not len(vocabulary.token_bytes) <= size <= MOST_ROWS:
        raise InvalidFieldError(
            "open.vocabulary_size",
            f"must be {len(vocabulary.token_bytes)} (the tokenizer's) to {MOST_ROWS}, not {size}",
        )
    params = MaskParams(size, _stop_ids(opened, vocabulary), _starts_after(opened, vocabulary))
    if params.starts_after in params.stop_token_ids:
        raise InvalidFieldError("open.stop_token_ids", "holds the id after which the grammar would start")
    return OpenedMask(opened.grammar.handle, source_from_proto(opened.grammar), params)


def _stop_ids(opened: pb.MaskOpen, vocabulary: Vocabulary) -> tuple[int, ...]:
    ids = tuple(dict.fromkeys(opened.stop_token_ids))
    if not ids:
        raise InvalidFieldError("open.stop_token_ids", "at least one is needed")
    if not vocabulary.token_ids.issuperset(ids):
        raise InvalidFieldError("open.stop_token_ids", "holds an id that the tokenizer lacks")
    return ids


def _starts_after(opened: pb.MaskOpen, vocabulary: Vocabulary) -> int | None:
    if opened.start not in STARTS:
        raise InvalidFieldError("open.start", "no such start")
    if opened.start != pb.MASK_START_AFTER_THINKING:
        return None
    if vocabulary.end_of_thinking is None:
        raise InvalidFieldError("open.start", f"the tokenizer has no {END_OF_THINKING}")
    return vocabulary.end_of_thinking


def window_from_proto(message: pb.MaskRequest, expected_round: int) -> pb.MaskWindow:
    """Check one round. Raises InvalidFieldError."""
    if message.WhichOneof("command") != "window":
        raise InvalidFieldError("window", "every message after the first must hold it")
    window = message.window
    if window.round != expected_round:
        raise InvalidFieldError("window.round", f"must be {expected_round}, not {window.round}")
    if len(window.draft_token_ids) > MOST_DRAFTS:
        raise InvalidFieldError("window.draft_token_ids", f"at most {MOST_DRAFTS}")
    return window


def window_to_proto(number: int, window: WindowMasks) -> pb.MaskResponse:
    """Write the masks as little-endian words, row by row."""
    return pb.MaskResponse(
        round=number,
        num_allowed_drafts=window.num_allowed_drafts,
        masks=window.masks.astype("<i4", copy=False).tobytes(),
        complete=window.complete,
    )


def unenforced_to_proto(unenforced: Iterable[Unenforced]) -> list[pb.UnenforcedKeyword]:
    """Write what is not enforced."""
    return [
        pb.UnenforcedKeyword(keyword=gap.keyword, path=gap.path, reason=gap.reason, refused_under_strict=gap.is_refused)
        for gap in unenforced
    ]
