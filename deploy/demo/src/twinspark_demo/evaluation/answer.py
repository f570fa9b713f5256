"""Answer: what became of one prompt on the server."""

from dataclasses import dataclass

from twinspark_demo.evaluation.reply import Reply

NO_REPLY = Reply("")


@dataclass(frozen=True, slots=True)
class Answer:
    """The last reply of a conversation, and the counts of all of it. `error` says why there is none, or none whole."""

    reply: Reply = NO_REPLY
    text: str = ""
    """As it came: the content, then each call."""
    reasoning: str = ""
    prompt_tokens: int = 0
    """Of the last prompt."""
    output_tokens: int = 0
    """Of all replies."""
    error: str = ""
    is_failed_request: bool = False
    """The server refused or did not answer."""
