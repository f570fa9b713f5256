"""The table, the wrong answers, and whether it is good enough."""

from collections.abc import Callable, Mapping, Sequence

from twinspark_demo.images.scoring import Outcome

LEAST_SHARE = 0.90
"""Right answers that each kind needs, the control too."""
_HEADINGS = ("kind", "prompts", "right", "question before", "question after", "held out")
_SHOWN = 10


def is_good_enough(scores: Mapping[str, Sequence[Outcome]]) -> bool:
    """Whether every kind reaches LEAST_SHARE."""
    return all(share(outcomes) >= LEAST_SHARE for outcomes in scores.values())


def share(outcomes: Sequence[Outcome]) -> float:
    """Of right answers, 0 to 1; 0 of none."""
    return sum(outcome.is_right for outcome in outcomes) / max(len(outcomes), 1)


def format_table(scores: Mapping[str, Sequence[Outcome]]) -> str:
    """One line a kind, in percent."""
    lines = [f"{_HEADINGS[0]:<12}" + "".join(f"{heading:>17}" for heading in _HEADINGS[1:])]
    for kind, outcomes in scores.items():
        parts: tuple[Callable[[Outcome], bool], ...] = (
            lambda _: True,
            lambda outcome: outcome.prompt.is_before,
            lambda outcome: not outcome.prompt.is_before,
            lambda outcome: outcome.prompt.held_out,
        )
        chosen = [[outcome for outcome in outcomes if belongs(outcome)] for belongs in parts]
        cells = [f"{100 * share(part):.0f}" if part else "-" for part in chosen]
        lines.append(f"{kind:<12}" + "".join(f"{cell:>17}" for cell in (str(len(outcomes)), *cells)))
    return "\n".join(lines)


def format_failures(scores: Mapping[str, Sequence[Outcome]]) -> str:
    """Wrong answers, a few of each kind."""
    lines = []
    for kind, outcomes in scores.items():
        wrong = [outcome for outcome in outcomes if not outcome.is_right]
        lines += [
            f"{kind}: said {outcome.answer!r}, right is {outcome.expected!r}; asked {outcome.prompt.text!r}"
            for outcome in wrong[:_SHOWN]
        ]
        if len(wrong) > _SHOWN:
            lines.append(f"{kind}: {len(wrong) - _SHOWN} more")
    return "\n".join(lines)
