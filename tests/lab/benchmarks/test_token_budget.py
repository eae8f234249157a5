"""Token budgets: every arm can be run, and is named as what it learns."""

import importlib
import json
from pathlib import Path

import numpy as np

from malmoi.flags import parse_flags
from malmoi.pretrain.config.run_config import read_config
from malmoi.pretrain.config.run_plan import RunPlan, plan_from_json
from malmoi.pretrain.config.settings import PretrainSettings
from malmoi.pretrain.plan import Machine, plan

ROOT = Path(__file__).parents[3]


def test_no_arm_of_the_token_budgets_is_refused() -> None:
    budgets = importlib.import_module("lab.benchmarks.quality.token_budget")
    without_generator = {name for name in budgets.ARMS if "mlm" in name or "noise" in name}
    without_generator.remove("warm-mlm-first")
    without_generator.add("released")
    for name, (start, _) in budgets.ARMS.items():
        made, gone_on_with = (
            planned(*each)
            for each in (budgets.STARTS[start], budgets.pretraining_flags(name, 1_000_000, 0))
        )
        # What an arm learns from is said by its flags, not by how short it is.
        assert gone_on_with.start.reason == "as given"
        assert gone_on_with.objective.needs_generator == (name not in without_generator)
        # What is begun with has to be of the size that is asked for.
        assert made.networks.generator_size == gone_on_with.networks.generator_size


def planned(*flags: object) -> RunPlan:
    arguments = ["--corpus", "texts.txt", *map(str, flags)]
    given = parse_flags(PretrainSettings, program=None, about="", arguments=arguments)
    cpu = Machine(device="cpu", prefers_bf16=True)
    return plan(read_config(given), lengths=np.full(99, 9), checkpoint=None, machine=cpu)


def test_the_released_arm_learns_what_the_released_encoder_learnt() -> None:
    budgets = importlib.import_module("lab.benchmarks.quality.token_budget")
    arm = planned(*budgets.pretraining_flags("released", 10**6, 0))
    path = ROOT / "checkpoints" / "malmoi-small" / "run.json"
    released = plan_from_json(json.loads(path.read_text(encoding="utf-8"))["plan"], path)
    for section in ("objective", "optimizer", "networks", "batching"):
        assert getattr(arm, section) == getattr(released, section), section
