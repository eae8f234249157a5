"""Token budgets: every arm can be run, and is named as what it learns."""

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tyro

from malmoi.errors import InputError
from malmoi.flags import parse_flags
from pretrain.config.run_plan import RunPlan, plan_from_json
from pretrain.config.settings import PretrainSettings, read_config
from pretrain.plan import Machine, plan

ROOT = Path(__file__).parents[2]


def test_no_arm_of_the_token_budgets_is_refused() -> None:
    budgets = importlib.import_module("benchmarks.quality.token_budget")
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
    budgets = importlib.import_module("benchmarks.quality.token_budget")
    arm = planned(*budgets.pretraining_flags("released", 10**6, 0))
    path = ROOT / "checkpoints" / "malmoi-small" / "run.json"
    released = plan_from_json(json.loads(path.read_text(encoding="utf-8"))["plan"], path)
    for section in ("objective", "optimizer", "networks", "batching"):
        assert getattr(arm, section) == getattr(released, section), section


def test_a_released_encoder_is_scored_beside_the_arms_at_the_tokens_it_saw(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    budgets = importlib.import_module("benchmarks.quality.token_budget")
    reviews = tmp_path / "nsmc" / "ratings_train.txt"
    reviews.parent.mkdir()
    lines = [f"{n}\t리뷰 {n}번 {'좋다' if n % 2 else '별로'}\t{n % 2}" for n in range(8)]
    reviews.write_text("id\tdocument\tlabel\n" + "\n".join(lines) + "\n", encoding="utf-8")
    scored: list[tuple[str, int]] = []

    def fine_tune(
        encoder: Path, train: object, dev: object, settings: Any, *, seed: int
    ) -> dict[str, float]:
        scored.append((encoder.name, seed))
        return {"accuracy": 80.0 + len(scored)}

    def pretrain_once(folder: Path, flags: list[object], *, corpus: Path) -> Path:
        seen = {"tokens": 1_000_123 if "--max-tokens" in flags else 0, "seconds": 1.5}
        folder = tmp_path / folder.name
        folder.mkdir(exist_ok=True)
        record = {"progress": seen, "final_metrics": {}}
        (folder / "run.json").write_text(json.dumps(record))
        return folder

    monkeypatch.setattr(budgets, "fine_tune", fine_tune)
    monkeypatch.setattr(budgets, "pretrain_once", pretrain_once)
    released = tmp_path / "mine"
    flags = ["--data", str(tmp_path), "--corpus", str(reviews)]
    flags += ["--train-size", "4", "--dev-size", "4", "--seeds", "2"]
    flags += ["--arms", "warm-noise-bag", "--tokens", "0,1e6", "--also", str(released)]
    flags += ["--output", str(tmp_path / "results.json")]
    settings = tyro.cli(budgets.BudgetSettings, args=flags)
    with pytest.raises(InputError, match=r"--also of an encoder with its record, found no .*run"):
        budgets.main(settings)
    released.mkdir()
    record = {"progress": {"tokens": 50_001_482, "seconds": 60.4}, "final_metrics": {}}
    (released / "run.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"found no .*model\.safetensors"):
        budgets.main(settings)
    (released / "model.safetensors").write_bytes(b"weights")
    budgets.main(settings)
    assert scored.count(("mine", 0)) == scored.count(("mine", 1)) == 1
    assert len(scored) == 6  # the start, the arm and the released encoder with two seeds
    assert "    50M mine (" in capsys.readouterr().out
    assert (tmp_path / "results.png").stat().st_size > 10_000
    budgets.main(settings)
    assert len(scored) == 6  # measured before
    capsys.readouterr()
    (released / "model.safetensors").write_bytes(b"others")
    budgets.main(settings)
    assert scored[6:] == [("mine", 0), ("mine", 1)]
    # Scores of other weights do not come into one mean.
    found = capsys.readouterr().out.splitlines()
    lines = [line for line in found if line.startswith("    50M mine (")]
    assert len(lines) == 2 and all("(2 seeds)" in line for line in lines)
