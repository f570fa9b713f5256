"""The tower in front of a frozen language model: what trains, what stays, and that pictures are told apart."""

import pytest
import torch

from support.vision_models import SMALL_BATCH
from twinspark_demo.training.cluster import Cluster
from twinspark_demo.training.model import ForwardOptions
from twinspark_demo.training.optimizer import FlatAdamW
from twinspark_demo.training.vision.batch import VisionBatch
from twinspark_demo.training.vision.model import MOST_GRADIENT, LimitedGradient, VisionModel, in_place
from twinspark_demo.training.vision.packing import VisionTensors
from twinspark_demo.training.vision.step import VisionStep

CPU = torch.device("cpu")


def filled(rows: VisionTensors) -> VisionBatch:
    batch = VisionBatch.empty(SMALL_BATCH, CPU)
    batch.fill(rows)
    return batch


def test_the_answer_s_loss_reaches_every_parameter_of_the_tower_and_none_of_the_language_model(
    vision_model: VisionModel, small_rows: VisionTensors
) -> None:
    vision_model(filled(small_rows)).main.backward()
    for name, parameter in vision_model.named_parameters():
        if name.startswith(("language_model.", "heads.")):
            assert parameter.grad is None, name
        else:
            assert parameter.grad is not None and parameter.grad.abs().max() > 0, name
    assert {name.split(".")[0] for name in vision_model.trained()} == {"model", "heads"}


@pytest.mark.slow
def test_a_few_pictures_are_learned_by_heart_through_the_frozen_language_model(
    vision_model: VisionModel, small_rows: VisionTensors, alone: Cluster
) -> None:
    with torch.no_grad():  # a fresh model says the same whatever it reads
        for parameter in vision_model.language_model.parameters():
            parameter.mul_(5.0 if parameter.dim() > 1 else 1.0)
    before = {name: value.clone() for name, value in vision_model.language_model.state_dict().items()}
    batch = filled(small_rows)
    assert int(batch.tower.images.max()) + 1 == SMALL_BATCH.pictures
    step = VisionStep(vision_model, FlatAdamW(vision_model.trained()), batch, alone)
    step.prepare()
    losses = []
    for _ in range(100):
        step.run(3e-3)
        losses.append(step.read_sums())
    first, last = losses[0], losses[-1]
    assert last[0] < 0.35 * first[0]  # the answer, through the language model
    assert last[1] < 0.1 * first[1] and last[2] < 0.1 * first[2]  # the heads
    after = vision_model.language_model.state_dict()
    assert all(torch.equal(value, before[name]) for name, value in after.items())


def test_judging_learns_nothing_and_keeps_the_sums(
    vision_model: VisionModel, small_rows: VisionTensors, alone: Cluster
) -> None:
    step = VisionStep(vision_model, FlatAdamW(vision_model.trained()), filled(small_rows), alone)
    step.run(1e-3)
    before = {name: value.clone() for name, value in vision_model.tensors().items()}
    assert step.judge().shape == (SMALL_BATCH.rows, SMALL_BATCH.row_tokens)
    assert all(torch.equal(value, before[name]) for name, value in vision_model.tensors().items())
    step.run(0.0)
    sums = step.read_sums()
    step.run(0.0)
    assert abs(sums[0] - 2 * step.read_sums()[0]) < 0.5 * sums[0]  # of two steps, not three


def test_rows_stand_where_the_images_tokens_are(vision_model: VisionModel, small_rows: VisionTensors) -> None:
    batch = filled(small_rows)
    rows = torch.arange(1, len(batch.targets) + 1).float()[:, None].expand(-1, 3)
    placed = in_place(torch.zeros(*batch.text.tokens.shape, 3), rows, batch.targets)[..., 0]
    images = batch.text.tokens == 2022
    assert images.any() and torch.equal(placed > 0, images)
    assert len(placed[images].unique()) == int(images.sum())


def test_without_image_tokens_the_language_model_reads_as_ever(
    vision_model: VisionModel, small_rows: VisionTensors
) -> None:
    reader, batch = vision_model.language_model, filled(small_rows)
    loss, correct = reader.read(batch.text, ForwardOptions(), reader.embed(batch.text.tokens))
    whole = reader(batch.text, ForwardOptions())
    assert torch.equal(loss, whole.main) and torch.equal(correct, whole.correct)


def test_a_gradient_is_shortened_and_never_lengthened() -> None:
    x = torch.zeros(2, 3, requires_grad=True)
    LimitedGradient.apply(x, MOST_GRADIENT).backward(torch.full((2, 3), 10.0))
    assert x.grad is not None
    torch.testing.assert_close(x.grad.norm(), torch.tensor(MOST_GRADIENT))
    x.grad = None
    LimitedGradient.apply(x, MOST_GRADIENT).backward(torch.full((2, 3), 0.01))
    torch.testing.assert_close(x.grad, torch.full((2, 3), 0.01))
