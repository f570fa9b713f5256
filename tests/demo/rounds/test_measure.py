"""What is measured: the engine's own taps, drafts as the one-page drafter makes them, block by block."""

from pathlib import Path

import pytest
import torch

from support.drafters import one_page
from support.planted_fault import Fault, planted
from twinspark_demo.drafter.folder import load_drafter
from twinspark_demo.rounds.engine import Said, ServedTarget
from twinspark_demo.rounds.measure import drafts_of, is_seen
from twinspark_demo.training.model import ForwardOptions, TrainingBatch
from twinspark_demo.training.served_folder import load_folder

MODULE = "twinspark_demo.rounds.measure"
TAPPED = (0, 1, 3)


@pytest.fixture(scope="module")
def target(served_folder: Path) -> ServedTarget:
    return ServedTarget(served_folder, TAPPED)


def ask(target: ServedTarget, monkeypatch: pytest.MonkeyPatch) -> Said:
    """A prompt of 70 tokens, and 12 of a reply that would go on."""
    monkeypatch.setattr("twinspark_demo.rounds.engine.MAX_TOKENS", 12)
    return target.reply(torch.randint(1900, (70,), generator=torch.Generator().manual_seed(7)).tolist())


def test_taps_are_those_that_the_drafter_is_trained_with(
    served_folder: Path, target: ServedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ask(target, monkeypatch)
    ids = torch.zeros(1, 96, dtype=torch.int64)
    ids[0, :82] = torch.tensor([*said.prompt, *said.tokens])
    batch = TrainingBatch(ids, torch.zeros(1, 96), torch.zeros_like(ids), torch.arange(96)[None])
    with torch.no_grad():
        tapped = load_folder(served_folder).tapped(batch, ForwardOptions(sparse=True), TAPPED)
    assert len(said.tokens) == 12
    assert said.taps.shape == (81, 3, 128)
    theirs = tapped.taps.view(96, 3, 128)[:81]
    for place in range(3):
        difference = float((said.taps[:, place] - theirs[:, place]).norm() / theirs[:, place].norm())
        assert difference < 0.02  # the engine rounds the experts' inputs to fp16
        others = float((said.taps[:, place] - theirs[:, place - 1]).norm() / theirs[:, place].norm())
        assert others > 0.1


def drafts_agree(said: Said, target: ServedTarget, folder: Path) -> bool:
    drafter = load_drafter(folder)
    page = one_page(drafter, (target.embedding, target.head))
    found = drafts_of(said, drafter, target)
    taps = said.taps.flatten(1).double().numpy()
    agree = len(found) == len(said.tokens) - 1
    for place in (0, 4, 10):
        rows = page.rows(taps[: 70 + place], said.tokens[place])
        agree = agree and found[place] == page.walk(rows, said.tokens[place])
    return agree


def test_drafts_are_those_of_the_one_page_drafter(
    target: ServedTarget, drafter_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert drafts_agree(ask(target, monkeypatch), target, drafter_folder)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("sees-less", MODULE, "start - drafter.config.sliding_window,", "start - 8,"),
        Fault("one-anchor-early", MODULE, "torch.arange(start - first, end", "torch.arange(start - first - 1, end - 1"),
        Fault("one-tap-late", MODULE, "said.taps[None, first:].flat", "said.taps[None, first:].roll(1, 1).flat"),
    ],
    ids=lambda fault: fault.name,
)
def test_the_comparison_finds(
    fault: Fault, target: ServedTarget, drafter_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ask(target, monkeypatch)
    with planted(fault):
        assert not drafts_agree(said, target, drafter_folder)


def test_a_block_sees_what_begins_less_than_a_window_before_it() -> None:
    prompt = [7, 8, 9, *[1] * 509]
    assert is_seen([8, 9], prompt, 512)
    assert is_seen([7, 8], prompt, 513)
    assert not is_seen([7, 8], prompt, 512)  # row 0 stands at 512 and sees from 1 on
    with pytest.raises(ValueError, match="do not hold"):
        is_seen([9, 8], prompt, 512)
