"""Grammars compiled in this process, and texts sampled under their masks."""

import json
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from xgrammar import CompiledGrammar, GrammarCompiler, TokenizerInfo

from twinspark_grammar.compiling.job import Compiled, Job, JobLimits, Refused
from twinspark_grammar.masks import MaskParams, RequestMasks, WindowMasks
from twinspark_grammar.source import GrammarKind, GrammarSource
from twinspark_grammar.tokens import build_tokenizer_info
from twinspark_grammar.vocabulary import NO_UTF8, Vocabulary, load_vocabulary
from twinspark_tools.tiny_checkpoint.shapes import SHAPES
from twinspark_tools.tiny_checkpoint.tokenizer import tokenizer_json

DEMO = Path(__file__).parents[2] / "deploy/demo/checkpoint"
ROOM = 24
"""Rows of the model behind the tokenizer's last id: in the demo model it is as many."""
SECONDS = 1000.0
"""For the masks of one window: no test may fail for being slow."""
MOST_TOKENS = 300


class Grammars:
    """One tokenizer's grammars."""

    def __init__(self, folder: Path) -> None:
        self.vocabulary: Vocabulary = load_vocabulary(folder)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.info: TokenizerInfo = build_tokenizer_info(self.vocabulary)
        self._compiler = GrammarCompiler(self.info, max_threads=1, cache_enabled=False)
        self.size = len(self.vocabulary.token_bytes) + ROOM
        self.end = self.vocabulary.added["<|endoftext|>"]

    def run(self, kind: GrammarKind, source: Any, max_depth: int = 64) -> Compiled | Refused:
        """Do what the compiler's child does; a source that is no string is written as JSON."""
        text = source if isinstance(source, str) else json.dumps(source)
        return Job(self._compiler, self.vocabulary, JobLimits(max_depth, 64 << 20)).run(GrammarSource(kind, text))

    def compile(self, kind: GrammarKind, source: Any) -> CompiledGrammar:
        """Compile what must compile."""
        outcome = self.run(kind, source)
        assert isinstance(outcome, Compiled), outcome
        return CompiledGrammar.deserialize_json(outcome.serialized, self.info)

    def open(
        self, grammar: CompiledGrammar, *, starts_after: int | None = None, stops: Sequence[int] = ()
    ) -> RequestMasks:
        """Open a stream's state."""
        params = MaskParams(self.size, tuple(stops) or (self.end,), starts_after)
        return RequestMasks(grammar, self.vocabulary, params, SECONDS)

    def encode(self, text: str) -> list[int]:
        """Give ids; spelled added tokens become tokens."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Give the text of ids, added tokens by their spelling."""
        return b"".join(self.vocabulary.token_bytes[i].removeprefix(NO_UTF8) for i in ids).decode(
            errors="surrogatepass"
        )

    def accepts(self, grammar: CompiledGrammar, text: str) -> bool:
        """Say whether a whole text is an output of the grammar: no token masked, and the end allowed after it."""
        masks = self.open(grammar)
        ids = [*self.encode(text), self.end]
        window = masks.advance([], ids)
        return window.num_allowed_drafts == len(ids)

    def sample(self, grammar: CompiledGrammar, seed: int) -> list[int] | None:
        """Draw an output under the masks, one token a round; None where it does not end within MOST_TOKENS."""
        draw, masks = random.Random(seed), self.open(grammar)
        output: list[int] = []
        window = masks.advance([], [])
        while len(output) < MOST_TOKENS:
            allowed = allowed_ids(window)
            if self.end in allowed and draw.random() < 0.5:
                return output
            allowed = [i for i in allowed if i != self.end] or [self.end]
            closing = [i for i in allowed if self.vocabulary.token_bytes[i][:1] in b'"]},:']
            output.append(draw.choice(closing if closing and draw.random() < 0.6 else allowed))
            if output[-1] == self.end:
                return output[:-1]
            window = masks.advance(output[-1:], [])
        return None


def allowed_ids(window: WindowMasks, row: int = 0) -> list[int]:
    """Give the ids that a row allows."""
    words = np.ascontiguousarray(window.masks[row])
    found: list[int] = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
    return found


@cache
def demo_grammars() -> Grammars:
    """Give those of the demo model's tokenizer."""
    return Grammars(DEMO)


def tiny_grammars(folder: Path) -> Grammars:
    """Give those of the tiny checkpoint's tokenizer, written to the folder."""
    (folder / "tokenizer.json").write_text(tokenizer_json(SHAPES["tiny"]))
    return Grammars(folder)
