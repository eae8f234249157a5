"""The plan of a run, by a table: what is given and found, and what is decided."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from malmoi.errors import InputError
from malmoi.pretrain.config.run_plan import plan_from_json
from malmoi.pretrain.plan import Checkpoint, Machine
from malmoi.pretrain.resuming import as_given, changes, difference, go_on
from tests.malmoi.pretrain.conftest import CPU, GPU, config_of, plan_of

LENGTHS = np.full(100, 8)
KNOWN = Checkpoint(preset="small", has_generator=True, sharing="word", learnt_with_generator=True)


def test_every_number_is_decided() -> None:
    for given, machine, expected in (
        (
            {},
            CPU,
            {
                "corpus.vocab_size": 32_000,
                "corpus.max_length": 128,
                "start.init": "word-vectors",
                "start.seed": 42,
                "networks.preset": "tiny",
                "networks.initializer_range": 0.05,
                "networks.precision": "fp32",
                "networks.sharing": "instance",
                "optimizer.learning_rate": 5e-4,
                "batching.tokens_per_batch": 4_096,
                "batching.rows": "length",
                "batching.row_length": None,
                "length.limit": "max_steps",
                "length.epochs": 10,
                "execution.compile": "off",
                "execution.save_steps": 200,
            },
        ),
        (
            {"preset": "base", "max_length": 64, "max_tokens": 20e6, "seed": 0},
            GPU,
            {
                "start.seed": 0,
                "networks.initializer_range": 0.02,
                "networks.precision": "bf16",
                "optimizer.learning_rate": 2e-4,
                "batching.tokens_per_batch": 32_768,
                "batching.rows": "packed",
                "batching.row_length": 64,
                "length.limit": "max_tokens",
                "length.amount": 20e6,
                "length.epochs": None,
                "execution.compile": "graphs",
            },
        ),
        (
            {"precision": "fp32", "batching": "length", "max_steps": 0, "learning_rate": 1e-3},
            GPU,
            {
                "networks.precision": "fp32",
                "optimizer.learning_rate": 1e-3,
                "execution.compile": "on",
                "length.limit": "max_steps",
                "length.amount": 0,
            },
        ),
        ({"tokenizer": Path("t")}, CPU, {"corpus.tokenizer": "t", "corpus.vocab_size": None}),
        ({"delimiter": "none"}, CPU, {"corpus.delimiter": "none"}),
        (
            {"delimiter": "auto", "sheet": "Q1"},
            CPU,
            {"corpus.delimiter": None, "corpus.sheet": "Q1"},
        ),
        ({"max_flops": 1e15}, CPU, {"length.limit": "max_flops", "length.amount": 1e15}),
        ({"recipe": "two-stage"}, CPU, {"networks.sharing": "none", "networks.generator_size": 1}),
    ):
        planned = plan_of(machine=machine, **given).as_json()
        found = {name: planned[name.split(".")[0]][name.split(".")[1]] for name in expected}
        assert found == expected


def test_epochs_become_steps_by_the_batches_that_they_make() -> None:
    planned = plan_of(epochs=3, tokens_per_batch=160, tokens=1_600)
    # Of 160 texts 13 fill a batch, each padded to 12.
    assert planned.length.steps == 3 * 13 and planned.length.epochs == 3


def test_a_checkpoint_says_what_it_is_gone_on_with() -> None:
    for given, sharing in (
        ({}, "word"),
        ({"sharing": "instance"}, "instance"),
        ({"recipe": "noise"}, "instance"),
        ({"recipe": "two-stage"}, "none"),
    ):
        planned = plan_of(init="run", checkpoint=KNOWN, **given)
        assert planned.networks.sharing == sharing
        assert planned.networks.preset == "small" and planned.batching.tokens_per_batch == 16_384
        assert planned.corpus.vocab_size is None


def test_a_frozen_discriminator_shares_no_difference_to_a_table() -> None:
    gdes = replace(KNOWN, sharing="gdes")
    for recipe, expected in (("frozen-discriminator", "none"), ("rtd", "gdes")):
        assert plan_of(init="run", checkpoint=gdes, recipe=recipe).networks.sharing == expected


def test_a_plan_is_read_as_it_was_written() -> None:
    for given in ({}, {"recipe": "fast-electra", "generator_from": Path("runs/one")}):
        planned = plan_of(**given)
        assert (
            plan_from_json(json.loads(json.dumps(planned.as_json())), Path("run.json")) == planned
        )


def test_a_damaged_plan_is_named() -> None:
    values = plan_of().as_json()
    values["optimizer"]["learning_rate"] = "fast"
    with pytest.raises(InputError, match=r"run\.json: optimizer\.learning_rate: expected a number"):
        plan_from_json(values, Path("run.json"))


def test_a_plan_gives_itself_again_by_flags_and_keys() -> None:
    planned = plan_of(recipe="gdes", max_steps=3, seed=7, learning_rate=1e-3)
    given = {name: value for name, value in as_given(planned).items() if value is not None}
    del given["corpus"], given["optimizer.muon_learning_rate"]  # there is no Muon
    del given["objective.first_stage"], given["objective.unchanged_fraction"]
    again = plan_of(
        recipe="rtd",
        max_steps=3,
        **{name.replace(".", "_"): value for name, value in given.items()},
    )
    for section in ("objective", "networks", "optimizer", "batching"):
        assert getattr(again, section) == getattr(planned, section)
    assert difference(config_of(recipe="gdes", seed=7), planned) == ""


def test_what_a_resumed_run_cannot_have_otherwise() -> None:
    for given, expected in (
        ({"seed": 7}, "it has --seed 42, found --seed 7"),
        ({"init": "random"}, "it has --init word-vectors, found --init random"),
        ({"forbid_original": True}, "found objective.forbid_original=true"),
        ({"recipe": "mlm"}, "it has objective.name=rtd, found objective.name=mlm"),
        ({"batching": "packed"}, "it has batching.rows=length, found batching.rows=packed"),
        # The same, and what may change.
        ({"seed": 42, "recipe": "rtd", "generator_size": 0.25}, ""),
        ({"max_tokens": 1e6, "learning_rate": 1.0, "device": "cuda", "save_steps": 1}, ""),
        ({"batching": "auto", "sharing": "auto", "precision": "auto"}, ""),
    ):
        found = difference(config_of(**given), plan_of(recipe="rtd", max_steps=9))
        assert found.startswith(expected) if not expected else expected in found
        assert bool(found) == bool(expected)


def test_a_resumed_run_takes_its_length_rates_and_execution_anew() -> None:
    before = plan_of(recipe="muon", max_steps=9, save_steps=5, log_steps=5)
    machine = Machine(device="cuda", prefers_bf16=True, processes=2, threads=3)

    def resumed(**given: Any) -> Any:
        return go_on(config_of(resume=True, **given), before, lengths=LENGTHS, machine=machine)

    same = resumed()
    assert replace(same, execution=before.execution) == before and changes(before, same) == []
    assert (same.execution.device, same.execution.compile) == ("cuda", "on")
    assert (same.execution.processes, same.execution.save_steps) == (2, 5)
    after = resumed(max_tokens=500, learning_rate=1e-4, muon_learning_rate=1e-3, log_steps=1)
    assert changes(before, after) == [
        "--max-tokens 500 (was --max-steps 9)",
        "--learning-rate 0.0001 (was 0.0005)",
        "optimizer.muon_learning_rate=0.001 (was 0.005)",
    ]
    assert (after.execution.save_steps, after.execution.log_steps) == (5, 1)
    assert after.networks == before.networks and after.batching == before.batching
    # A recipe's learning rate and execution are no wish to change them.
    assert changes(before, resumed(recipe="muon")) == []


def test_graphs_are_refused_where_there_can_be_none() -> None:
    for machine, rows in ((CPU, "packed"), (GPU, "length")):
        with pytest.raises(InputError, match=r"execution\.compile=graphs needs a GPU"):
            plan_of(machine=machine, compile="graphs", batching=rows)
