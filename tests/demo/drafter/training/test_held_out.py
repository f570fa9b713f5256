"""The check of a run, on the committed drafter: kept tokens a round of whole replies, by kind."""

from pathlib import Path

import pytest
import torch

from twinspark_demo.drafter import DEMO
from twinspark_demo.drafter.folder import load_drafter
from twinspark_demo.drafter.target import Target
from twinspark_demo.drafter.training.held_out import HeldOut
from twinspark_demo.drafter.training.plan import BlockFeed
from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER
from twinspark_demo.training.served_folder import load_folder
from twinspark_engine.model.weights import masked_token_ids
from twinspark_tools.launch.model_folder import DEMO_FOLDER

MODEL = Path(__file__).parents[4] / DEMO_FOLDER


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_row_is_one_kind_and_its_replies_are_said_in_few_rounds() -> None:
    target = Target(load_folder(MODEL), masked_token_ids(MODEL, DEMO.vocab_size), DEMO)
    feed = BlockFeed("short", 1024, rows=4, blocks=48)
    found = HeldOut(target, COMMITTED_TOKENIZER, [feed], torch.device("cpu")).kept(
        load_drafter(MODEL.parent / "drafter")
    )
    means = {kept.kind: kept.mean for kept in found}
    assert list(means) == ["arithmetic", "facts", "counting", "copy"]
    assert 1.8 < means.pop("facts") <= 4  # three tokens, of which the first comes from the prompt's pass
    assert all(5 < mean <= 8 for mean in means.values()), means
