"""From what a request asks of its answer's form to what its Generate calls carry and its answers are checked for."""

from dataclasses import dataclass

from twinspark_gateway.constraint import Constraint
from twinspark_gateway.errors import grammar_unavailable
from twinspark_gateway.gateway import Gateway
from twinspark_gateway.generation import Grammar
from twinspark_gateway.reply.answer_check import AnswerCheck


@dataclass(frozen=True, slots=True)
class Held:
    """What holds a reply to its constraint; nothing where it has none."""

    grammar: Grammar | None = None
    # None where masks enforce all of it.
    check: AnswerCheck | None = None


async def compile_constraint(gateway: Gateway, constraint: Constraint | None, *, starts_after_thinking: bool) -> Held:
    """Compile, before anything of the reply is sent. Raises ApiError."""
    if constraint is None:
        return Held()
    if gateway.grammar is None:
        raise grammar_unavailable("this server runs without a grammar service", retryable=False)
    compiled = await gateway.grammar.compile(constraint)
    grammar = Grammar(compiled.handle, constraint.kind, constraint.source, starts_after_thinking)
    if not compiled.gaps or constraint.schema is None:
        return Held(grammar)
    return Held(grammar, AnswerCheck(constraint.schema, gateway.checking))
