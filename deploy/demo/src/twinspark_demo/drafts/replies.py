"""Replies: the one right reply to each of the evaluation's prompts, as tokens behind its prompt."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jinja2 import Template
from numpy.typing import NDArray

from twinspark_demo.conversation import Conversation
from twinspark_demo.drafts import template
from twinspark_demo.evaluation.prompt import Prompt
from twinspark_demo.row_batch import TokenClass
from twinspark_demo.rows.encode import Document, Encoder
from twinspark_demo.rows.render import render


@dataclass(frozen=True, slots=True)
class Reply:
    """A prompt and its right reply. Output position j is row `start + j` of the document."""

    document: Document
    start: int

    @property
    def tokens(self) -> NDArray[np.int16]:
        """int16 [n]: the reply, thinking and the token that ends it included."""
        return self.document.ids[self.start :]


def right_replies(prompts: Sequence[Prompt], encoder: Encoder, folder_template: Template) -> list[Reply]:
    """One for each prompt.

    Raises ValueError for a prompt to which several replies are right, and if the folder's chat template makes another
    prompt than this package trains with.
    """
    conversations = [_conversation(prompt) for prompt in prompts]
    for prompt, conversation in zip(prompts, conversations, strict=True):
        ours = "".join(text for text, _ in render(conversation)[:-1])
        if ours != template.render(folder_template, prompt.messages, prompt.tools):
            raise ValueError("the folder's chat template makes another prompt than the model is trained with")
    return [Reply(document, _start(document)) for document in encoder.encode(conversations)]


def _conversation(prompt: Prompt) -> Conversation:
    if prompt.reply is None or prompt.later_turns:
        raise ValueError(f"{prompt.kind}: a kind is needed whose whole right reply is known")
    reply = {"role": "assistant", "reasoning_content": "", **prompt.reply}
    return Conversation(prompt.kind, (*prompt.messages, reply), prompt.tools)


def _start(document: Document) -> int:
    """Row of the last reply's first token."""
    others = np.flatnonzero(document.classes != TokenClass.ANSWER)
    return int(others[-1]) + 1
