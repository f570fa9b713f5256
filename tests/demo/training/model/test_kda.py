"""The memory loss: what it counts, and that a step against it makes channels forget sooner."""

import torch

from support.demo_models import pack, random_documents, random_model, small_config
from twinspark_demo.training.model import ForwardOptions
from twinspark_demo.training.model.kda import MEMORY_TOKENS, memory_loss

CONFIG = small_config()


def test_it_is_1_where_nothing_is_forgotten_and_0_within_the_bound() -> None:
    forever = torch.zeros(1, 3, 2, 4)
    assert memory_loss(forever) == 1.0
    assert memory_loss(forever - 1.0 / MEMORY_TOKENS) == 0.0
    assert memory_loss(forever - 5.0) == 0.0
    twice_as_long = forever - 0.5 / MEMORY_TOKENS
    assert memory_loss(torch.cat((twice_as_long, forever - 1.0))) == 0.25


def test_it_is_the_mean_over_the_recurrent_layers_and_a_step_against_it_lowers_it() -> None:
    model = random_model(CONFIG)
    biases = {name: p for name, p in model.named_parameters() if name.endswith(".dt_bias")}
    batch = pack(random_documents((40, 24), CONFIG.vocab_size))
    with torch.no_grad():
        for bias in biases.values():
            bias.sub_(8.0)  # so slow that every channel counts
    before = model(batch, ForwardOptions()).memory
    assert 0.5 < float(before.detach()) < 1.0
    before.backward()
    with torch.no_grad():
        for name, bias in biases.items():
            assert bias.grad is not None and (bias.grad < 0).all(), name
            bias.sub_(bias.grad / bias.grad.abs().max())
    assert model(batch, ForwardOptions()).memory < before
