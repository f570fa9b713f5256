"""A shape on which a stage of training takes seconds on a CPU."""

from dataclasses import replace

import pytest
import torch

from twinspark_demo.training.cluster import Cluster
from twinspark_demo.training.model import DemoModel
from twinspark_engine.model.config import ModelConfig
from twinspark_tools.tiny_checkpoint.shapes import SHAPES, config_json

SMALL = replace(
    SHAPES["demo"],
    hidden_size=128,
    intermediate_size=128,
    moe_intermediate_size=128,
    n_routed_experts=2,
    heads=2,
    head_dim=32,
    q_lora_rank=32,
    kv_lora_rank=32,
    index_n_heads=2,
    index_head_dim=32,
    index_topk=64,
    num_layers=4,
)


@pytest.fixture
def small_model() -> DemoModel:
    """Fresh weights of the small shape."""
    return DemoModel(ModelConfig.from_json(config_json(SMALL)), seed=1)


@pytest.fixture
def alone() -> Cluster:
    """The cluster of one process without a GPU."""
    return Cluster(0, 1, torch.device("cpu"))
