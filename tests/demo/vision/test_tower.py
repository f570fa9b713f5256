"""The tower against Transformers' vision module of glm5_next with the same random weights, fp32."""

import json
from dataclasses import replace

import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from transformers.models.glm5_next.configuration_glm5_next import Glm5NextVisionConfig
from transformers.models.glm5_next.modeling_glm5_next import Glm5NextVisionModel

from support.pictures import noise
from support.planted_fault import Fault, planted
from twinspark_demo.vision import DEMO_VISION, Tower, TowerInput, VisionShape, cut_patches, pixel_values
from twinspark_demo.vision.parameters import tower_shapes
from twinspark_demo.vision.tower import NO_IMAGE

TOWER = "twinspark_demo.vision.tower"
SMALL = VisionShape(
    depth=2, hidden_size=48, num_heads=3, intermediate_size=40, out_hidden_size=36, projection_intermediate_size=56
)
SIZES = [(112, 112), (150, 190), (300, 90)]


def build_reference(shape: VisionShape) -> Glm5NextVisionModel:
    config = Glm5NextVisionConfig(
        **{name: value for name, value in shape.config_json().items() if name != "model_type"}
    )
    torch.manual_seed(3)
    model = Glm5NextVisionModel._from_config(config).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2 if parameter.dim() < 2 else 3 / parameter[0].numel() ** 0.5)
    return model


@torch.no_grad()
def reference_rows(model: Glm5NextVisionModel, images: list[Image.Image]) -> Tensor:
    cut = [cut_patches(image) for image in images]
    pixels = torch.cat([torch.from_numpy(pixel_values(patches)) for patches in cut])
    grids = torch.tensor([[1, *(patches.places.max(0) + 1).tolist()] for patches in cut])
    rows: Tensor = model(pixels, grid_thw=grids).pooler_output
    return rows


@torch.no_grad()
def rows(shape: VisionShape, model: Glm5NextVisionModel, inputs: TowerInput) -> Tensor:
    return Tower(shape)(dict(model.named_parameters()), inputs, torch.float32)


@pytest.mark.parametrize(
    "shape", [SMALL, DEMO_VISION, replace(SMALL, swiglu_limit=0.5)], ids=["small", "demo", "clamped"]
)
def test_rows_are_those_of_transformers(shape: VisionShape) -> None:
    assert_as_transformers(shape)


def assert_as_transformers(shape: VisionShape) -> None:
    model = build_reference(shape)
    images = [noise(size, seed) for seed, size in enumerate(SIZES)]
    expected = reference_rows(model, images)
    found = rows(shape, model, TowerInput.of([cut_patches(image) for image in images]))[0]
    assert found.shape == expected.shape
    assert (found - expected).abs().max() < 1e-4 * expected.abs().max()


@pytest.mark.parametrize(
    "fault",
    [
        Fault("another-mean", TOWER, "/ 255 - mean)", "/ 255 - 0.5)"),
        Fault("another-deviation", TOWER, "mean) / deviation", "mean) / 0.5"),
        Fault("channels-of-256", TOWER, "values.float() / 255", "values.float() / 256"),
        Fault("columns-for-rows", TOWER, "(places[..., None].float()", "(places.flip(-1)[..., None].float()"),
        Fault("squares-transposed", TOWER, "permute(0, 2, 3, 1)", "permute(0, 3, 2, 1)"),
        Fault(
            "images-see-each-other",
            TOWER,
            "inputs.images[:, None, :, None] ==",
            "0 * inputs.images[:, None, :, None] <=",
        ),
    ],
    ids=lambda fault: fault.name,
)
def test_the_comparison_finds(fault: Fault) -> None:
    with planted(fault), pytest.raises(AssertionError):
        assert_as_transformers(SMALL)


def test_names_and_shapes_are_those_of_transformers() -> None:
    model = build_reference(DEMO_VISION)
    assert tower_shapes(DEMO_VISION) == {name: tuple(value.shape) for name, value in model.named_parameters()}


def test_an_image_alone_has_the_rows_that_it_has_beside_others_and_before_padding() -> None:
    model = build_reference(SMALL)
    first, second = (cut_patches(noise(size, seed)) for seed, size in enumerate(SIZES[:2]))
    alone = rows(SMALL, model, TowerInput.of([second]))[0]
    both = TowerInput.of([first, second])
    padded = TowerInput(
        torch.nn.functional.pad(both.values, (0, 0, 0, 8)),
        torch.nn.functional.pad(both.places, (0, 0, 0, 8)),
        torch.nn.functional.pad(both.images, (0, 8), value=NO_IMAGE),
    )
    beside = rows(SMALL, model, padded)[0, first.num_rows : first.num_rows + second.num_rows]
    torch.testing.assert_close(beside, alone, rtol=1e-4, atol=1e-5)


def test_the_shape_survives_its_config() -> None:
    assert VisionShape.from_config(json.loads(json.dumps(SMALL.config_json()))) == SMALL
