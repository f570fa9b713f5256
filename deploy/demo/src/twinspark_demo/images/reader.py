"""Reader: a served folder's tower and the engine's forward in this process, one rank, greedy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import torch
from jinja2 import Template
from PIL import Image
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

from twinspark_demo.drafts.template import load_template
from twinspark_demo.images.prompts import ImagePrompt
from twinspark_demo.vision import Patches, Tower, TowerInput, VisionShape, cut_patches
from twinspark_demo.vision.parameters import tower_shapes
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.config_fields import read_json
from twinspark_engine.model.model import Model
from twinspark_engine.model.rows import Rows
from twinspark_engine.model.state import ModelState
from twinspark_engine.model.weights import eos_token_ids, load_weights, masked_token_ids
from twinspark_engine.model.weights.headers import checkpoint_files
from twinspark_engine.model.weights.names import VISION_PREFIX
from twinspark_engine.ranks.transport import LocalTransport
from twinspark_kernels.embedding import ImageRows
from twinspark_kernels.row_class import RowClass

CONTEXT, MAX_TOKENS = 2048, 24
IMAGE_TOKEN, THINK_END = "<|image|>", "</think>"


class Reader:
    """Answers prompts with pictures, in float32."""

    def __init__(self, folder: Path) -> None:
        """Raises CheckpointError or OSError where the engine could not load it, ValueError where it has no tower."""
        content = read_json(folder / "config.json")
        section = content.get("vision_config")
        if not isinstance(section, Mapping):
            raise ValueError("its config.json has no vision_config: it is a folder without a tower")
        self._shape = VisionShape.from_config(section)
        self._parameters = _load_tower(folder, self._shape)
        config = ModelConfig.from_folder(folder)
        self._model = Model(config, load_weights(folder, config, 0, 1, torch.float32), LocalTransport())
        self._config = config
        self._template: Template = load_template(folder)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        image_id = self._tokenizer.token_to_id(IMAGE_TOKEN)
        if image_id is None:
            raise ValueError(f"its tokenizer has no {IMAGE_TOKEN}")
        self._image_id = int(image_id)
        self._ends = frozenset(eos_token_ids(folder))
        self._masked = sorted(masked_token_ids(folder, config.vocab_size))

    @torch.inference_mode()
    def answer(self, prompt: ImagePrompt, shown: Sequence[bytes] | None = None) -> str:
        """The reply's text behind its thinking; `shown` as in prompt_rows."""
        rows = self.prompt_rows(prompt, shown)
        state = ModelState.allocate(self._config, 1, 1, CONTEXT, torch.float32)
        output: list[int] = []
        while True:
            hidden = self._model.forward(rows, state)
            logits = self._model.logits(hidden[-1:], rows.row_class)[0]
            logits[self._masked] = -torch.inf
            token = int(logits.argmax())
            if token in self._ends or len(output) == MAX_TOKENS:
                break
            position = int(rows.positions[-1]) + 1
            output.append(token)
            rows = Rows.segment(RowClass.DECODE, torch.tensor([token]), 0, position)
        text: str = self._tokenizer.decode(output, skip_special_tokens=False)
        return text.partition(THINK_END)[2]

    @torch.inference_mode()
    def prompt_rows(self, prompt: ImagePrompt, shown: Sequence[bytes] | None = None) -> Rows:
        """The rendered prompt in one chunk, each image's token repeated for each of its rows, and these rows.

        shown: files whose rows stand in place of the prompt's own pictures; ValueError if they have other sizes.
        """
        own = [_cut(drawing.file) for drawing in prompt.drawings]
        others = own if shown is None else [_cut(file) for file in shown]
        if [each.num_rows for each in own] != [each.num_rows for each in others]:
            raise ValueError("pictures of other sizes cannot stand in place of these")
        ids = self._ids(prompt, own)
        places = (ids == self._image_id).nonzero().flatten()
        values = Tower(self._shape)(self._parameters, TowerInput.of(others), torch.float32)[0]
        rows = Rows.segment(RowClass.PROMPT, ids, 0, 0)
        return replace(rows, images=ImageRows(places, values))

    def _ids(self, prompt: ImagePrompt, patches: Sequence[Patches]) -> Tensor:
        text = self._template.render(messages=prompt.messages, tools=None, add_generation_prompt=True)
        ids: list[int] = []
        waiting = iter(patches)
        for token in self._tokenizer.encode(text, add_special_tokens=False).ids:
            ids += [token] * (next(waiting).num_rows if token == self._image_id else 1)
        return torch.tensor(ids)


def _cut(file: bytes) -> Patches:
    return cut_patches(Image.open(BytesIO(file)))


def _load_tower(folder: Path, shape: VisionShape) -> dict[str, Tensor]:
    stored = {name: tensor for file in checkpoint_files(folder) for name, tensor in load_file(file).items()}
    missing = [name for name in tower_shapes(shape) if VISION_PREFIX + name not in stored]
    if missing:
        raise ValueError(f"it lacks {VISION_PREFIX}{missing[0]} and {len(missing) - 1} tensors more of its tower")
    return {name: stored[VISION_PREFIX + name].float() for name in tower_shapes(shape)}
