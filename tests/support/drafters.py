"""Drafters for tests: small ones, with every parameter random."""

from dataclasses import replace

import torch
from torch import Tensor

from support.one_page_drafter import Page
from twinspark_demo.drafter import DEMO, Drafter, DrafterConfig

SMALL = replace(
    DEMO,
    vocab_size=96,
    hidden_size=32,
    intermediate_size=48,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    sliding_window=24,
    mask_token_id=95,
    selector_rank=12,
    conv_group_size=8,
    target_layer_ids=(0, 2, 3),
    num_target_layers=4,
)


def random_drafter(config: DrafterConfig = SMALL, seed: int = 0) -> Drafter:
    """A drafter without a parameter at 0 or 1, where a wrong formula could give the right answer."""
    drafter = Drafter(config, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in drafter.named_parameters():
            mean, deviation = (1.0, 0.25) if parameter.dim() == 1 else (0.0, parameter.shape[-1] ** -0.5)
            if name.endswith("base_kernel"):
                mean, deviation = 0.5, 0.4
            if name.endswith("codebook"):
                deviation = 1.0
            parameter.copy_(mean + deviation * torch.randn(parameter.shape, generator=generator))
    return drafter


def random_tables(config: DrafterConfig = SMALL, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Embedding and head of a target."""
    generator = torch.Generator().manual_seed(seed)
    shape = (config.vocab_size, config.hidden_size)
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def one_page(drafter: Drafter, tables: tuple[Tensor, Tensor]) -> Page:
    """The same drafter in float64."""
    config = drafter.config
    tensors = {name: parameter.detach().double().numpy() for name, parameter in drafter.named_parameters()}
    embedding, head = (table.double().numpy() for table in tables)
    return Page(
        tensors,
        embedding,
        head,
        config.num_attention_heads,
        config.num_key_value_heads,
        config.head_dim,
        config.sliding_window,
        config.mask_token_id,
        config.selector_top_k,
        config.num_hidden_layers,
    )
