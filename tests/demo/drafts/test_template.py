"""Prompts are rendered as Transformers renders them."""

from pathlib import Path
from typing import Any

import pytest
from jinja2.exceptions import TemplateError
from transformers.utils.chat_template_utils import render_jinja_template

from twinspark_demo.drafts.template import load_template, render
from twinspark_demo.evaluation.drawing import draw_prompts, kinds


@pytest.mark.parametrize("kind", [kind for kind in kinds() if not kind.startswith("needle")])
def test_every_prompt_is_rendered_as_transformers_does(kind: str, served_folder: Path) -> None:
    source = (served_folder / "chat_template.jinja").read_text()
    template = load_template(served_folder)
    for prompt in draw_prompts(kind, 12):
        messages: list[Any] = list(prompt.messages)
        expected, _ = render_jinja_template(
            [messages], tools=list(prompt.tools) or None, chat_template=source, add_generation_prompt=True
        )
        assert render(template, messages, prompt.tools) == expected[0]


def test_text_outside_ascii_and_markup_stays_as_it_is(served_folder: Path) -> None:
    messages: list[Any] = [
        {"role": "user", "content": "<b>wörld</b>"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"x": ["é", 1]}}}]},
        {"role": "tool", "content": "ü"},
    ]
    source = (served_folder / "chat_template.jinja").read_text()
    expected, _ = render_jinja_template([messages], chat_template=source, add_generation_prompt=True)
    assert render(load_template(served_folder), messages) == expected[0]


def test_a_role_that_the_template_refuses_is_an_error(served_folder: Path) -> None:
    with pytest.raises(TemplateError):
        render(load_template(served_folder), [{"role": "robot", "content": ""}])


def test_blocks_are_trimmed_and_loops_may_break(tmp_path: Path) -> None:
    source = "{% for m in messages %}\n    {% if m.role == 'x' %}{% break %}{% endif %}\n{{ m.role }}\n{% endfor %}\n"
    (tmp_path / "chat_template.jinja").write_text(source)
    messages = [{"role": role, "content": ""} for role in "abxc"]
    expected, _ = render_jinja_template([messages], chat_template=source, add_generation_prompt=True)
    assert render(load_template(tmp_path), messages) == expected[0] == "a\nb\n"
