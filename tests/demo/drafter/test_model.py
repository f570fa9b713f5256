"""The forward over many blocks at once against the one-page drafter, block by block; and what a block sees."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from support.demo_models import pack, random_documents
from support.drafters import SMALL, one_page, random_drafter, random_tables
from support.planted_fault import Fault, planted
from twinspark_demo.drafter import DEMO, Drafter
from twinspark_demo.drafter.blocks import Blocks, PackedRows
from twinspark_demo.drafter.drafting import draft
from twinspark_demo.drafter.parameters import tensor_shapes

LAYER, BLOCKS, SELECTOR = (f"twinspark_demo.drafter.{name}" for name in ("layer", "blocks", "selector"))
FAULTS = [
    Fault(
        "rotary-interleaved", LAYER, "x.to(dtype).chunk(2, dim=-1)", "(x.to(dtype)[..., ::2], x.to(dtype)[..., 1::2])"
    ),
    Fault(
        "convolution-crosses-blocks",
        LAYER,
        "before = F.pad(h, (0, 0, 1, 0))[..., :-1, :]",
        "before = h.flatten(1, 2).roll(1, 1).view_as(h)",
    ),
    Fault("same-kernel-on-both-sides", LAYER, "base[1], dynamic[..., 1, :, :])", "base[1], dynamic[..., 0, :, :])"),
    Fault("one-base-on-both-sides", LAYER, "convolve(h, base[1],", "convolve(h, base[0],"),
    Fault("no-norm-of-keys", LAYER, 'rms_norm(k, w.master("k_norm.weight"), c.rms_norm_eps)', "k"),
    Fault("window-one-wider", BLOCKS, "(behind < config.sliding_window)", "(behind <= config.sliding_window)"),
    Fault("window-of-the-anchor", BLOCKS, "(anchors[..., None] + steps)[", "(anchors[..., None] + 0 * steps)["),
    Fault("sees-the-pending-tap", BLOCKS, "(context < anchors[..., None])", "(context <= anchors[..., None])"),
    Fault("sees-other-documents", BLOCKS, "(context >= first[..., None])", "(context >= 0 * first[..., None])"),
    Fault("sees-other-blocks", BLOCKS, "(blocks[:, None] == blocks)", "(blocks[:, None] >= blocks)"),
    Fault("causal-block", BLOCKS, "own = (blocks[:, None] == blocks)", "own = (blocks[:, None] == blocks).tril()"),
    Fault("pending-is-masked", BLOCKS, "steps == 0,", "steps < 0,"),
    Fault("positions-of-the-row", BLOCKS, "cls(ids, rows.positions.gather(1, anchors)[", "cls(ids, anchors["),
]
LENGTHS = (40, 37)
ANCHORS = [3, 17, 30, 39, 48, 60, 84]  # of two documents: rows 0 to 47 and 48 on; one has no context


def packed_rows(seed: int = 3) -> PackedRows:
    batch = pack(random_documents(LENGTHS, SMALL.vocab_size - 2, seed))
    return PackedRows(batch.tokens, batch.documents, batch.positions)


def random_taps(rows: PackedRows, seed: int = 4) -> Tensor:
    width = len(SMALL.target_layer_ids) * SMALL.hidden_size
    return torch.randn(*rows.tokens.shape, width, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def worst_difference(drafter: Drafter, rows: PackedRows, taps: Tensor, anchors: list[int]) -> float:
    """Between the forward over all blocks and the one page, relative to values of about 1."""
    tables = random_tables()
    page = one_page(drafter, tables)
    found = drafter(taps, rows.positions, Blocks.of(rows, torch.tensor([anchors]), drafter.config), tables[0])
    worst = 0.0
    for place, anchor in enumerate(anchors):
        prefix = taps[0, anchor - int(rows.positions[0, anchor]) : anchor].double().numpy()
        expected = page.rows(prefix, int(rows.tokens[0, anchor]))
        worst = max(worst, float((found[0, place].double() - torch.from_numpy(expected)).abs().max()))
    return worst


def test_every_block_is_that_of_the_one_page_drafter() -> None:
    rows = packed_rows()
    assert worst_difference(random_drafter(), rows, random_taps(rows), ANCHORS) < 1e-4


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_comparison_finds(fault: Fault) -> None:
    rows = packed_rows()
    with planted(fault):
        assert worst_difference(random_drafter(), rows, random_taps(rows), ANCHORS) > 1e-3


def test_a_fresh_drafter_is_that_of_the_one_page_too() -> None:
    rows = packed_rows()
    assert worst_difference(Drafter(SMALL, seed=2), rows, random_taps(rows), ANCHORS) < 1e-4


def test_drafts_follow_the_walk_of_the_one_page_drafter() -> None:
    rows, drafter, tables = packed_rows(), random_drafter(), random_tables()
    taps, page = random_taps(rows), one_page(drafter, tables)
    found = draft(drafter, taps, rows, torch.tensor([ANCHORS]), tables)[0].tolist()
    differing = 0
    for place, anchor in enumerate(ANCHORS):
        pending = int(rows.tokens[0, anchor])
        expected = page.rows(taps[0, anchor - int(rows.positions[0, anchor]) : anchor].double().numpy(), pending)
        assert found[place] == page.walk(expected, pending)
        differing += found[place] != (expected @ page.head.T).argmax(-1).tolist()
    assert differing  # edges decide somewhere


@pytest.mark.parametrize(
    "fault",
    [
        Fault("edges-weigh-one", SELECTOR, "best.values[:, place] + EDGE_WEIGHT *", "best.values[:, place] +"),
        Fault("edges-of-the-pending", SELECTOR, "edges(rows[:, place], before, c", "edges(rows[:, place], pending, c"),
        Fault("few-candidates", SELECTOR, "logits.float().topk(c.selector_top_k", "logits.float().topk(2"),
    ],
    ids=lambda fault: fault.name,
)
def test_the_walk_finds(fault: Fault) -> None:
    with planted(fault), pytest.raises(AssertionError):
        test_drafts_follow_the_walk_of_the_one_page_drafter()


def test_a_block_sees_511_rows_back_and_no_further() -> None:
    """Row r at position s + r sees from position s + r - 511 on; the last to see the oldest row is row 0."""
    torch.manual_seed(0)
    anchor, drafter = 600, Drafter(DEMO, seed=1)
    embedding = torch.randn(DEMO.vocab_size, DEMO.hidden_size)
    length = 640
    rows = PackedRows(
        torch.randint(2000, (1, length)), torch.zeros(1, length, dtype=torch.int64), torch.arange(length)[None]
    )
    taps = torch.randn(1, length, len(DEMO.target_layer_ids) * DEMO.hidden_size)
    blocks = Blocks.of(rows, torch.tensor([[anchor]]), DEMO)

    def rows_with(changed: slice) -> Tensor:
        other = taps.clone()
        other[:, changed] += 1.0
        with torch.no_grad():
            hidden: Tensor = drafter(other, rows.positions, blocks, embedding)
        return hidden

    plain = rows_with(slice(0, 0))
    assert torch.equal(rows_with(slice(0, anchor - 511)), plain)
    assert torch.equal(rows_with(slice(anchor, length)), plain)
    assert not torch.equal(rows_with(slice(anchor - 511, anchor - 510)), plain)
    assert not torch.equal(rows_with(slice(anchor - 1, anchor)), plain)


def test_there_are_81_tensors_of_the_published_size() -> None:
    shapes = tensor_shapes(DEMO)
    assert len(shapes) == 81
    parameters = sum(torch.Size(shape).numel() for shape in shapes.values())
    assert parameters == 3_733_120
    assert {name: tuple(p.shape) for name, p in Drafter(DEMO).named_parameters()} == shapes


def test_names_and_shapes_of_the_published_drafter() -> None:
    published = replace(
        DEMO, vocab_size=154_880, hidden_size=4096, intermediate_size=12_288, num_attention_heads=32,
        num_key_value_heads=8, head_dim=128, selector_rank=256,
    )  # fmt: skip
    shapes = tensor_shapes(published)
    assert sum(torch.Size(shape).numel() for shape in shapes.values()) == 1_171_080_448
    assert shapes["layers.4.mlp_conv.base_kernel"] == (2, 2, 4096)
    assert shapes["layers.0.attention_conv.kernel_projection.weight"] == (1024, 4096)
    assert shapes["candidate_selector.successor_codebook"] == (154_880, 256)
    assert shapes["fc.weight"] == (4096, 20_480)
