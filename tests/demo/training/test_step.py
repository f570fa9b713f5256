"""One step follows the weights of its losses."""

from support.demo_models import pack, random_documents, random_model, small_config
from twinspark_demo.training.cluster import Cluster
from twinspark_demo.training.model import ForwardOptions
from twinspark_demo.training.optimizer import FlatAdamW
from twinspark_demo.training.step import LossWeights, TrainingStep

CONFIG = small_config()
STEPS, RATE = 5, 1e-2


def memory_after_steps(weight: float, alone: Cluster) -> float:
    """The memory loss of a fresh model after steps with this weight of it."""
    model = random_model(CONFIG)
    for name, parameter in model.named_parameters():
        if name.endswith(".dt_bias"):
            parameter.detach().sub_(8.0)  # so slow that every channel counts
    batch = pack(random_documents((40, 24), CONFIG.vocab_size))
    weights = LossWeights(mtp=0.3, indexer=1.0, memory=weight)
    step = TrainingStep(model, FlatAdamW(dict(model.named_parameters())), weights, alone)
    step.add(batch, ForwardOptions())
    for _ in range(STEPS):
        step.run(0, RATE, RATE)
    return float(model(batch, ForwardOptions()).memory.detach())


def test_the_memory_loss_is_lowered_by_its_weight(alone: Cluster) -> None:
    assert memory_after_steps(10.0, alone) < memory_after_steps(0.0, alone)
