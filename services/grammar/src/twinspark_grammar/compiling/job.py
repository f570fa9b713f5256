"""What the forked child of the compiler host does: reads one source, compiles it, tells what came of it.

Runs in a process of its own, which may be killed at any time; nothing here is shared with anyone.
"""

import enum
import json
import random
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from xgrammar import CompiledGrammar, GrammarCompiler, GrammarMatcher

from twinspark_grammar.compiling.warnings_of_library import PLACE_IN_LIBRARY, collect_warnings
from twinspark_grammar.schema.enforcement import Unenforced, find_unenforced
from twinspark_grammar.schema.json_grammar import json_grammar
from twinspark_grammar.schema.json_source import JsonSourceError, TooDeepError, read_json
from twinspark_grammar.schema.shape import SchemaError, check_shapes, settle_patterns
from twinspark_grammar.source import GrammarKind, GrammarSource
from twinspark_grammar.structural_tag import UnknownTokenError, bind_tokens, find_schemas
from twinspark_grammar.tool_calls.tag import build_tag, find_unenforced_arguments
from twinspark_grammar.tool_calls.tools import ToolsError, read_tools
from twinspark_grammar.tool_calls.values import EndlessUnionError
from twinspark_grammar.vocabulary import Vocabulary

MOST_REASON_CHARACTERS = 500
"""A compiler's reason is cut here: it may quote a whole source."""
NO_REASON = "it does not compile, and xgrammar does not say why"
OUT_OF_MEMORY = "bad_alloc"
TOO_MUCH_MEMORY = "compiling takes more than the memory that one grammar gets"
PROBE_TOKENS = 128
MOST_PROBE_SECONDS = 0.3
"""Of processor time, for all tokens of the probe; ordinary grammars with 2,024 tokens take 1 to 2 ms."""


class Refusal(enum.Enum):
    """Why a source was not compiled."""

    INVALID = "invalid"
    TOO_LARGE = "too_large"
    TOO_COMPLEX = "too_complex"


@dataclass(frozen=True, slots=True)
class Refused:
    """No grammar; `message` may quote the source where `refusal` is INVALID."""

    refusal: Refusal
    message: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """A grammar, as xgrammar serializes it, and what it does not enforce."""

    serialized: str
    unenforced: tuple[Unenforced, ...]


@dataclass(frozen=True, slots=True)
class JobLimits:
    """`max_serialized_bytes`: of the result."""

    max_depth: int
    max_serialized_bytes: int


class InvalidSourceError(Exception):
    """The source cannot be a grammar; the message says why."""


class SlowMasksError(Exception):
    """Tokens and masks of this grammar take far too long."""


class Job:
    """Compiles one source with one compiler."""

    def __init__(self, compiler: GrammarCompiler, vocabulary: Vocabulary, limits: JobLimits) -> None:
        self._compiler = compiler
        self._vocabulary = vocabulary
        self._limits = limits
        self._unenforced: list[Unenforced] = []

    def run(self, source: GrammarSource) -> Compiled | Refused:
        """Compile. Any outcome is an answer."""
        try:
            with collect_warnings() as warnings:
                grammar = self._compile(source)
            self._add_warnings(source.kind, warnings)
            _probe(grammar, len(self._vocabulary.token_bytes))
            serialized: str = grammar.serialize_json()
        except TooDeepError:
            return Refused(Refusal.TOO_LARGE, f"nested deeper than {self._limits.max_depth} levels")
        except (InvalidSourceError, JsonSourceError, SchemaError, ToolsError, UnknownTokenError) as error:
            return Refused(Refusal.INVALID, _shorten(str(error)))
        except EndlessUnionError:
            return Refused(Refusal.INVALID, "a parameter's schema refers to itself without a value in between")
        except SlowMasksError:
            return Refused(Refusal.TOO_COMPLEX, "its masks take too long: the grammar is ambiguous in too many ways")
        except MemoryError:
            return Refused(Refusal.TOO_COMPLEX, TOO_MUCH_MEMORY)
        except (RuntimeError, ValueError, TypeError) as error:  # what xgrammar raises for a bad source
            if OUT_OF_MEMORY in str(error):
                return Refused(Refusal.TOO_COMPLEX, TOO_MUCH_MEMORY)
            return Refused(Refusal.INVALID, _shorten(str(error)))
        if len(serialized) > self._limits.max_serialized_bytes:
            return Refused(Refusal.TOO_LARGE, f"compiles to more than {self._limits.max_serialized_bytes >> 20} MiB")
        return Compiled(serialized, tuple(self._unenforced))

    def _add_warnings(self, kind: GrammarKind, warnings: list[Unenforced]) -> None:
        """Take what xgrammar warned of; where no schema is, nothing may be ignored. Raises InvalidSourceError."""
        if warnings and kind in (GrammarKind.REGEX, GrammarKind.EBNF):
            raise InvalidSourceError(warnings[0].reason)
        self._unenforced += warnings

    def _compile(self, source: GrammarSource) -> CompiledGrammar:
        match source.kind:
            case GrammarKind.JSON_SCHEMA:
                return self._json_schema(source.text)
            case GrammarKind.JSON_OBJECT:
                return self._json_object(source.text)
            case GrammarKind.REGEX:
                return self._compiler.compile_regex(source.text)
            case GrammarKind.EBNF:
                return self._compiler.compile_grammar(source.text)
            case GrammarKind.CHOICE:
                return self._choice(source.text)
            case GrammarKind.STRUCTURAL_TAG:
                return self._structural_tag(source.text)
            case GrammarKind.TOOL_CALLS:
                return self._tool_calls(source.text)

    def _json_schema(self, text: str) -> CompiledGrammar:
        schema = read_json(text, self._limits.max_depth)
        if not isinstance(schema, dict):
            raise InvalidSourceError("a JSON schema must be an object")
        self._read_schema(schema)
        return self._compiler.compile_grammar(json_grammar(json.dumps(schema, ensure_ascii=False)))

    def _read_schema(self, schema: Any, path: str = "") -> None:
        """Check a schema and note what is not enforced. Raises SchemaError."""
        check_shapes(schema, path)
        self._unenforced += find_unenforced(schema, path)
        settle_patterns(schema, path, schema, path)

    def _json_object(self, text: str) -> CompiledGrammar:
        if text:
            raise InvalidSourceError("json_object takes no source")
        return self._compiler.compile_grammar(json_grammar('{"type":"object"}'))

    def _choice(self, text: str) -> CompiledGrammar:
        choices = read_json(text, self._limits.max_depth)
        if not isinstance(choices, list) or not choices:
            raise InvalidSourceError("a choice is a JSON array of strings, at least one")
        if not all(isinstance(choice, str) and choice for choice in choices):
            raise InvalidSourceError("each choice must be a string that is not empty")
        elements = [{"type": "const_string", "value": choice} for choice in dict.fromkeys(choices)]
        return self._compile_tag({"type": "structural_tag", "format": {"type": "or", "elements": elements}})

    def _structural_tag(self, text: str) -> CompiledGrammar:
        tag = read_json(text, self._limits.max_depth)
        for schema, path in find_schemas(tag):
            self._read_schema(schema, path)
        return self._compile_tag(tag)

    def _tool_calls(self, text: str) -> CompiledGrammar:
        source = read_tools(read_json(text, self._limits.max_depth))
        self._unenforced += find_unenforced_arguments(source)
        return self._compile_tag(build_tag(source, self._vocabulary.added))

    def _compile_tag(self, tag: Any) -> CompiledGrammar:
        bound = bind_tokens(tag, self._vocabulary.added)
        return self._compiler.compile_structural_tag(json.dumps(bound, ensure_ascii=False))


def _probe(grammar: CompiledGrammar, num_tokens: int) -> None:
    """Walk along allowed tokens, drawn at random, as a stream would. Raises InvalidSourceError and SlowMasksError.

    Finds a grammar that no output matches, or that leads to a dead end, as far as one walk shows it, and one whose
    masks would hold up others.
    """
    stop_token_id, draw = 0, random.Random(0)
    matcher = GrammarMatcher(grammar, override_stop_tokens=[stop_token_id])
    mask = np.zeros((1, (num_tokens + 31) // 32), np.int32)
    started = time.process_time()
    for step in range(PROBE_TOKENS):
        matcher.fill_next_token_bitmask(mask)
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")[:num_tokens])
        allowed = allowed[allowed != stop_token_id]
        if not len(allowed) and not matcher.is_completed():
            raise InvalidSourceError("leads to where no token is allowed" if step else "no output matches the grammar")
        if time.process_time() - started > MOST_PROBE_SECONDS:
            raise SlowMasksError
        if not len(allowed):
            return
        matcher.accept_token(int(draw.choice(allowed)))


def _shorten(reason: str) -> str:
    """One line without the places in xgrammar's sources and the full stop, cut to a length."""
    line = PLACE_IN_LIBRARY.sub("", " ".join(reason.split())).rstrip(". ") or NO_REASON
    return line if len(line) <= MOST_REASON_CHARACTERS else line[:MOST_REASON_CHARACTERS] + "..."
