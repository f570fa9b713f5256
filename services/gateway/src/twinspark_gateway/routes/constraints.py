"""From what a request asks of its answer's form to the grammar that its Generate calls carry."""

from twinspark_gateway.constraint import Constraint
from twinspark_gateway.errors import grammar_unavailable
from twinspark_gateway.gateway import Gateway
from twinspark_gateway.generation import Grammar


async def compile_constraint(
    gateway: Gateway, constraint: Constraint | None, *, starts_after_thinking: bool
) -> Grammar | None:
    """Compile, before anything of the reply is sent. Raises ApiError."""
    if constraint is None:
        return None
    if gateway.grammar is None:
        raise grammar_unavailable("this server runs without a grammar service", retryable=False)
    compiled = await gateway.grammar.compile(constraint)
    return Grammar(compiled.handle, constraint.kind, constraint.source, starts_after_thinking)
