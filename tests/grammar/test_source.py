"""Handles, and what each kind of source allows and refuses."""

from itertools import combinations
from typing import Any

import pytest

from support.grammar_texts import Grammars
from twinspark_grammar.compiling.job import Compiled, Refusal, Refused
from twinspark_grammar.source import GrammarKind, GrammarSource


def test_a_handle_depends_on_tokenizer_kind_and_text() -> None:
    sources = [GrammarSource(kind, text) for kind in GrammarKind for text in ("x", "y", "")]
    handles = [source.handle(digest) for source in sources for digest in ("one", "two")]
    assert all(one != other for one, other in combinations(handles, 2))
    assert GrammarSource(GrammarKind.REGEX, "x").handle("one") == GrammarSource(GrammarKind.REGEX, "x").handle("one")
    assert all(len(handle) == 64 for handle in handles)


@pytest.mark.parametrize(
    ("kind", "source", "allowed", "denied"),
    [
        (GrammarKind.JSON_OBJECT, "", ['{"a": [1, {"b": null}]}', "{}"], ["[]", "1", '{"a": 1} ', ""]),
        (GrammarKind.REGEX, "ab?c", ["ac", "abc"], ["a", "xac", "acx"]),
        (GrammarKind.REGEX, "^ab?c$", ["ac", "abc"], ["a", "xac", "acx"]),
        (GrammarKind.EBNF, 'root ::= "<" part* ">"\npart ::= [a-c] | root', ["<>", "<a<b>>"], ["<", "a", "<d>"]),
        (GrammarKind.CHOICE, ["yes", "no", "no way", 'q"\n'], ["yes", "no", "no way", 'q"\n'], ["", "n", "yesno"]),
    ],
)
def test_what_each_kind_allows(
    grammars: Grammars, kind: GrammarKind, source: Any, allowed: list[str], denied: list[str]
) -> None:
    grammar = grammars.compile(kind, source)
    assert [text for text in allowed if not grammars.accepts(grammar, text)] == []
    assert [text for text in denied if grammars.accepts(grammar, text)] == []


@pytest.mark.parametrize(
    ("kind", "source", "reason"),
    [
        (GrammarKind.JSON_OBJECT, "{}", "takes no source"),
        (GrammarKind.REGEX, "(a", "parenthesis is not closed"),
        (GrammarKind.REGEX, "a(?=b)", "Lookahead is not supported"),
        (GrammarKind.REGEX, r"\bword", "Word boundary is not supported"),
        (GrammarKind.REGEX, "a$b", "'$' should be at the end"),
        (GrammarKind.EBNF, "root ::= x", 'Rule "x" is not defined'),
        (GrammarKind.EBNF, 'start ::= "a"', 'The root rule with name "root" is not found'),
        (GrammarKind.EBNF, "root ::= root", "no output matches"),
        (GrammarKind.CHOICE, [], "at least one"),
        (GrammarKind.CHOICE, ["a", 1], "must be a string"),
        (GrammarKind.CHOICE, ["a", ""], "not empty"),
        (GrammarKind.CHOICE, "yes", "not JSON"),
        (GrammarKind.STRUCTURAL_TAG, {"type": "structural_tag"}, "format"),
    ],
)
def test_a_source_that_does_not_compile_is_refused_with_the_reason(
    demo: Grammars, kind: GrammarKind, source: Any, reason: str
) -> None:
    outcome = demo.run(kind, source)
    assert isinstance(outcome, Refused)
    assert outcome.refusal is Refusal.INVALID
    assert reason in outcome.message
    assert "/cpp/" not in outcome.message


def test_a_source_that_is_nested_too_deep_is_too_large(demo: Grammars) -> None:
    fits, deep = "[" * 6 + "]" * 6, "[" * 7 + "]" * 7
    assert demo.run(GrammarKind.JSON_SCHEMA, '{"default": ' + fits + "}", max_depth=7) != demo.run(
        GrammarKind.JSON_SCHEMA, '{"default": ' + deep + "}", max_depth=7
    )
    assert isinstance(demo.run(GrammarKind.JSON_SCHEMA, '{"default": ' + fits + "}", max_depth=7), Compiled)
    outcome = demo.run(GrammarKind.JSON_SCHEMA, '{"default": ' + deep + "}", max_depth=7)
    assert outcome == Refused(Refusal.TOO_LARGE, "nested deeper than 7 levels")


def test_a_grammar_whose_masks_take_ever_longer_is_too_complex(demo: Grammars) -> None:
    rules = "\n".join(f'r{i} ::= r{i} r{i} r{i} | "a" | "b" | ""' for i in range(4))
    outcome = demo.run(GrammarKind.EBNF, f"root ::= r0 r1 r2 r3 root | r0\n{rules}")
    assert isinstance(outcome, Refused)
    assert outcome.refusal is Refusal.TOO_COMPLEX


def test_a_long_reason_is_cut(demo: Grammars) -> None:
    outcome = demo.run(GrammarKind.STRUCTURAL_TAG, {"type": "structural_tag", "format": {"type": "x" * 5000}})
    assert isinstance(outcome, Refused)
    assert len(outcome.message) <= 503
