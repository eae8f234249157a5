"""A step never waits for the device.

Tensors of torch's meta device have shapes and no values: reading one, or a shape that depends on
one, is an error there. So the code that a GPU runs can be proved here not to do it. On a GPU torch
itself looks for it.
"""

from dataclasses import fields, replace
from typing import Any, TypeVar

import pytest
import torch

from malmoi.pretrain.data.batches import Batch
from malmoi.pretrain.engine.checkpoint import TrainerState
from malmoi.pretrain.engine.loop import Trainer
from malmoi.pretrain.engine.optimizer import Optimizers
from malmoi.pretrain.engine.processes import Processes
from malmoi.pretrain.objectives.step import StepResult, TrainingObjective
from malmoi.pretrain.objectives.vocabulary import VocabularyTables
from tests.malmoi.pretrain.conftest import Toy, plan_of

Tensors = TypeVar("Tensors", Batch, VocabularyTables)
FLAGS: list[dict[str, Any]] = [
    {},
    {"objective": "electra-15"},
    {"objective": "mlm"},
    {"objective": "replace-mlm"},
    {"objective": "all-tokens-mlm"},
    {"schedule": "adversarial", "sharing": "none"},
    {"schedule": "two-stage", "sharing": "none", "generator_size": 1.0},
    {"sharing": "gdes"},
    {"masking": "word"},
    {"masking": "rare", "random_fraction": 0.1},
    {"masking": "span", "generator_head": "sbo", "replaced_spans": True},
    {"sampling": "gumbel", "forbid_original": True, "temperature": 0.5},
    {"unigram_fraction": 0.5, "bag_weight": 5.0, "sentence_weight": 1.0},
    {"unigram_fraction": 1.0, "correction_weight": 5.0},
    {"unigram_fraction": 1.0, "loss_mean": "texts"},
    {"optimizer": "muon"},
    {"average_fraction": 1.0},
]


def moved(tensors: Tensors, device: torch.device) -> Tensors:
    """All of a dataclass's tensors on the device."""
    values = {each.name: getattr(tensors, each.name) for each in fields(tensors)}
    tensor = torch.Tensor
    return replace(tensors, **{n: v.to(device) for n, v in values.items() if isinstance(v, tensor)})


def trainer_on(device: torch.device, toy: Toy, flags: dict[str, Any]) -> Trainer:
    """In the middle of a run; the step that counts operations is over."""
    planned = plan_of(recipe="rtd", max_steps=100, **flags)
    pair = toy.pair_for(planned.objective, flags.get("sharing", "instance")).to(device)
    pair.set_attention("sdpa")
    return Trainer(
        pair,
        Optimizers(pair, planned.optimizer),
        TrainingObjective(recipe=planned.objective, tables=moved(toy.tables, device)),
        planned,
        # The meta device has no random generator; a CPU's serves it.
        Processes(device=torch.device("cpu") if device.type == "meta" else device),
        TrainerState(step=60, stage=1, hardware_flops_per_token=1.0),
        flops_per_token=1.0,
    )


def step_on_meta(toy: Toy, flags: dict[str, Any], *, packed: bool) -> StepResult:
    meta = torch.device("meta")
    trainer = trainer_on(meta, toy, flags)
    # torch's fused AdamW, which reads nothing, refuses the meta device.
    for group in trainer.optimizers.adam.param_groups:
        group["fused"] = False
        group["foreach"] = True
    return trainer.take_step(moved(toy.batch([[9], [7, 4], [5]], packed=packed), meta), 0.6)[1]


@pytest.mark.parametrize("packed", [False, True], ids=["length", "packed"])
@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_nothing_in_a_step_depends_on_a_value(
    toy: Toy, flags: dict[str, Any], packed: bool
) -> None:
    assert step_on_meta(toy, flags, packed=packed).loss.is_meta


def test_the_mask_that_a_gpu_gets_hides_the_same(toy: Toy) -> None:
    """Four dimensions, for transformers asks the device about a mask of two."""
    batch, pair = toy.batch([[9], [7], [5]]), toy.pair()
    pair.set_attention("sdpa")
    encoder = pair.discriminator.electra
    mask = batch.attention_mask
    assert mask is not None and not mask.all()
    expected = encoder(batch.input_ids, attention_mask=mask).last_hidden_state
    found = encoder(batch.input_ids, attention_mask=mask.bool()[:, None, None]).last_hidden_state
    real = batch.is_real
    torch.testing.assert_close(found[real], expected[real])
    assert not torch.allclose(encoder(batch.input_ids).last_hidden_state[real], expected[real])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("packed", [False, True], ids=["length", "packed"])
@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_a_gpu_is_never_waited_for(toy: Toy, flags: dict[str, Any], packed: bool) -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    trainer = trainer_on(device, toy, flags)
    batch = moved(toy.batch([[9], [7, 4], [5]], packed=packed), device)
    trainer.take_step(batch, 0.6)  # sets up libraries and optimizer states
    torch.cuda.set_sync_debug_mode("error")
    try:
        trainer.take_step(batch, 0.61)
    finally:
        torch.cuda.set_sync_debug_mode("default")
