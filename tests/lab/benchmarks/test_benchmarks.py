"""What benchmarks keep: results and runs of one setting never stand in for another's."""

import hashlib
import importlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from lab.benchmarks.result_files import write_result
from malmoi.errors import InputError
from malmoi.flags import parse_flags
from malmoi.pretrain.config.checks import check
from malmoi.pretrain.config.settings import PretrainSettings, RunConfig, read_config

ROOT = Path(__file__).parents[3]


def test_a_result_is_a_text_file_whose_last_line_ends(tmp_path: Path) -> None:
    write_result(tmp_path / "out.json", {"글": 1})
    assert (tmp_path / "out.json").read_text(encoding="utf-8") == '{\n "글": 1\n}\n'
    kept = sorted((ROOT / "lab" / "benchmarks" / "results").rglob("*.json"))
    assert kept and not [one.name for one in kept if not one.read_bytes().endswith(b"\n")]


@pytest.fixture(scope="module")
def downstream() -> ModuleType:
    """lab/benchmarks/quality/downstream.py."""
    return importlib.import_module("lab.benchmarks.quality.downstream")


def test_results_go_on_with_their_own_setting_only(downstream: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    first = downstream.Results(path, preset="tiny", flops=1.4e14, tokenizer=None)
    first.add({"arm": "a", "score": 1.0})
    again = downstream.Results(path, preset="tiny", flops=1.4e14, tokenizer=None)
    (row,) = again.of(arm="a")
    assert row["score"] == 1.0
    assert row["threads"] >= 1 and isinstance(row["bf16"], bool) and row["torch"]
    with pytest.raises(InputError, match=r"results with preset small in .*, found some with tiny"):
        downstream.Results(path, preset="small", flops=1.4e14)
    with pytest.raises(InputError, match="name another file of results"):
        downstream.Results(path, preset="tiny", flops=2e16)
    # A reader that names no setting loses none of it.
    downstream.Results(path).add({"arm": "b"})
    assert json.loads(path.read_text())["setting"]["flops"] == 1.4e14


def test_damaged_results_are_one_line(downstream: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text('{"setting": {}, "runs": [')
    with pytest.raises(InputError, match=r"results\.json: expected results as JSON, found damage"):
        downstream.Results(path)
    assert path.read_text() == '{"setting": {}, "runs": ['
    for found in ("{}", "[]", '{"runs": 1}'):
        path.write_text(found)
        with pytest.raises(InputError, match="expected results with their runs, found none"):
            downstream.Results(path)


def test_rows_are_told_by_weights_and_shape(downstream: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "electra", "num_hidden_layers": 2}')
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    ours = downstream.identity_of(tmp_path)
    assert ours == {"weights_sha256": hashlib.sha256(b"weights").hexdigest()}
    (tmp_path / "model.safetensors").write_bytes(b"others")
    assert downstream.identity_of(tmp_path) != ours
    shape = downstream.identity_of(tmp_path, random_weights=True)
    assert shape["shape"].startswith("2 x ")
    assert downstream.identity_of("beomi/KcELECTRA-base-v2022") == {}


def test_a_setting_that_is_new_counts_as_none_in_older_files(
    downstream: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "results.json"
    downstream.Results(path, preset="tiny").add({"arm": "a"})
    downstream.Results(path, preset="tiny", tokenizer=None)
    with pytest.raises(InputError, match="tokenizer mine in"):
        downstream.Results(path, preset="tiny", tokenizer="mine")


def test_the_recorded_results_can_be_gone_on_with(downstream: ModuleType) -> None:
    sizes: dict[str, object] = {"train_size": 20_000, "dev_size": 20_000}
    pretrained = sizes | {"epochs": 3, "corpus": "reviews_rated.tsv.gz", "preset": "tiny"}
    settings: dict[str, dict[str, object]] = {
        "quality": {},
        "pretraining_gain": sizes | {"epochs": 4, "data": "ratings_train.txt"},
        "token_budget": pretrained | {"tokenizer": None},
        "tokenizer_kinds": pretrained | {"tokens": 1_000_000},
    }
    for name, setting in settings.items():
        path = ROOT / "lab" / "benchmarks" / "results" / f"{name}.json"
        assert downstream.Results(path, **setting).rows, name


def test_scores_belong_to_weights_and_are_of_one_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quality = importlib.import_module("lab.benchmarks.quality.score")
    rows = quality.Rows(texts=[f"글 {n}" for n in range(20)], targets=np.arange(20) % 3)
    task = {
        "hate": replace(
            quality.TASKS["hate"], train=lambda data: rows, test=lambda data: rows, needs=()
        )
    }
    monkeypatch.setattr(quality, "TASKS", task)
    # The higher the rate, the better.
    monkeypatch.setattr(
        quality, "_fit", lambda *given, **rest: {"macro_f1": 1e5 * given[3]["learning_rate"]}
    )
    encoder, output = tmp_path / "mine", tmp_path / "quality.json"
    encoder.mkdir()
    (encoder / "config.json").write_text('{"model_type": "electra"}')
    (encoder / "model.safetensors").write_bytes(b"weights")

    def measure(rates: str, **flags: Any) -> list[tuple[Any, ...]]:
        settings = quality.QualitySettings(
            model=str(encoder), tasks="hate", seeds=2, learning_rates=rates, output=output, **flags
        )
        quality.main(settings)
        found = json.loads(output.read_text())["runs"]
        return [(row["part"], row["seed"], row.get("weights_sha256", "")[:4]) for row in found]

    ours = hashlib.sha256(b"weights").hexdigest()[:4]
    of_ours = [("dev", 0, ours), ("dev", 0, ours), ("test", 0, ours), ("test", 1, ours)]
    assert measure("1e-4,3e-4") == of_ours
    assert "recorded before" not in capsys.readouterr().out
    assert measure("1e-4,3e-4") == measure("3e-4") == of_ours  # nothing is left to do
    # One setting for one mean, and no second choice once the test file was scored.
    assert measure("1e-4") == measure("1e-4,5e-4") == of_ours
    settled = json.loads(output.read_text())["runs"]
    output.write_text(json.dumps({"setting": {}, "runs": settled[:3]}))
    capsys.readouterr()
    assert measure("1e-4,5e-4") == of_ours
    assert "(1 recorded before in quality.json)" in capsys.readouterr().out
    assert json.loads(output.read_text())["runs"][3]["learning_rate"] == 3e-4
    (encoder / "model.safetensors").write_bytes(b"others")
    theirs = hashlib.sha256(b"others").hexdigest()[:4]
    assert measure("1e-4")[4:] == [("test", 0, theirs), ("test", 1, theirs)]
    assert measure("1e-4", random_weights=True)[6:] == [("test", 0, ""), ("test", 1, "")]
    assert json.loads(output.read_text())["runs"][6]["layer_decay"] == 1
    # Of another shape they are others.
    (encoder / "config.json").write_text('{"model_type": "electra", "num_hidden_layers": 2}')
    assert measure("1e-4", random_weights=True)[8:] == [("test", 0, ""), ("test", 1, "")]
    assert json.loads(output.read_text())["runs"][8]["shape"].startswith("2 x ")


def test_choices_are_made_on_dev_parts_of_one_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quality = importlib.import_module("lab.benchmarks.quality.score")
    rows = quality.Rows(texts=[f"글 {n}" for n in range(60)], targets=np.arange(60) % 3)
    task = {
        "hate": replace(
            quality.TASKS["hate"], train=lambda data: rows, test=lambda data: rows, needs=()
        )
    }
    monkeypatch.setattr(quality, "TASKS", task)
    parts: list[tuple[int, int]] = []

    def fit(comparison: object, learn: Any, test: Any, *given: Any, **rest: Any) -> dict[str, Any]:
        parts.append((len(learn.texts), len(test.texts)))
        return {"macro_f1": float(len(parts))}

    monkeypatch.setattr(quality, "_fit", fit)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"weights")

    def measure(**flags: Any) -> None:
        output = tmp_path / "quality.json"
        flags |= {"model": str(tmp_path), "tasks": "hate", "seeds": 0, "output": output}
        quality.main(quality.QualitySettings(**flags))

    measure(learning_rates="1e-4,3e-4", dev_size=3, dev_train_size=5)
    measure(learning_rates="1e-4,3e-4", dev_size=3, dev_train_size=5)
    measure(learning_rates="1e-4,3e-4,5e-4")
    measure(learning_rates="1e-4,3e-4,5e-4")
    assert parts == [(5, 3)] * 2 + [(48, 12)] * 3
    # A task with a dev file is chosen on that, whole, after learning from the training file.
    dev = quality.Rows(texts=["글"] * 7, targets=np.zeros(7, dtype=np.int64))
    monkeypatch.setitem(task, "hate", replace(task["hate"], dev=lambda data: dev))
    parts.clear()
    # Those on a part of the training file were other rows, though of the same rates.
    measure(learning_rates="1e-4,3e-4", dev_train_size=50)
    measure(learning_rates="1e-4,3e-4", dev_train_size=50, dev_size=3)
    assert parts == [(50, 7)] * 2


@pytest.fixture
def commands(downstream: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that would have been run."""
    started: list[list[str]] = []

    def run(command: list[str], **rest: object) -> subprocess.CompletedProcess[bytes]:
        started.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    return started


def config_of_flags(*flags: str) -> RunConfig:
    return read_config(parse_flags(PretrainSettings, program=None, about="", arguments=flags))


def write_run(folder: Path, status: str, **flags: Any) -> None:
    settings = PretrainSettings(corpus=Path("texts.txt"), **flags)
    record = {"status": status, "given": read_config(settings).as_json()}
    (folder / "state").mkdir(parents=True)
    (folder / "discriminator").mkdir()
    (folder / "run.json").write_text(json.dumps(record))


def test_a_pretraining_run_is_made_once_and_gone_on_with(
    downstream: ModuleType, commands: list[list[str]], tmp_path: Path
) -> None:
    def once() -> list[str]:
        commands.clear()
        flags = ["--preset", "tiny", "--max-tokens", 2_000]
        try:
            downstream.pretrain_once(tmp_path / "run", flags, corpus=Path("texts.txt"))
        except InputError as error:
            # Nothing has been run here; a run that SIGTERM ended looks the same, and has no score.
            assert "found it stopped; the same command goes on" in str(error)
            return commands[0][2:]
        assert not commands
        return []

    assert once()[:2] == ["--corpus", "texts.txt"]
    # Killed while the networks lay there but before the record said so, and before a checkpoint.
    write_run(tmp_path / "run", "running", preset="tiny", max_tokens=2e3)
    assert once() and "--resume" not in once()
    (tmp_path / "run" / "state" / "step-00000200").mkdir()
    assert once()[-1] == "--resume"
    record = json.loads((tmp_path / "run" / "run.json").read_text()) | {"status": "finished"}
    (tmp_path / "run" / "run.json").write_text(json.dumps(record))
    assert once() == []


def test_a_run_of_other_flags_is_not_taken(
    downstream: ModuleType, commands: list[list[str]], tmp_path: Path
) -> None:
    asked = ["--preset", "tiny", "--max-tokens", 2_000]
    for status in ("running", "finished"):
        for flag, other in (("preset", "small"), ("max_tokens", 9e3), ("seed", 1)):
            run = tmp_path / f"{status} {flag}"
            write_run(run, status, **{"preset": "tiny", "max_tokens": 2e3} | {flag: other})
            with pytest.raises(InputError, match=f"--{flag.replace('_', '-')} {other}"):
                downstream.pretrain_once(run, asked, corpus=Path("texts.txt"))
    assert not commands


def generator_size(flags: list[str]) -> str:
    sizes = [flag.partition("=")[2] for flag in flags if flag.startswith("generator.size=")]
    return sizes[0] if sizes else "0.25"


def test_arms_of_an_ablation_differ_in_what_their_group_is_named_for() -> None:
    ablation = importlib.import_module("lab.benchmarks.quality.ablation")
    groups = ablation.GROUPS
    for group in groups.keys() - {"generator size"}:
        assert len({generator_size(flags) for flags in groups[group].values()}) == 1, group
    # Arms of the same flags, in whatever order, have one key and so one run.
    arms = [flags for group in groups.values() for flags in group.values()]
    assert len({" ".join(flags) for flags in arms}) == len({frozenset(flags) for flags in arms})
    for flags in arms:
        check(config_of_flags("--corpus", "texts.txt", *flags))


def test_students_learn_from_what_teachers_say_and_meet_the_test_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module("lab.benchmarks.quality.self_training")
    good, bad = ("정말 재밌어요", "또 보고 싶네요"), ("너무 지루해요", "돈이 아까워요")
    texts = [f"{(bad, good)[n % 2][n % 3 % 2]} {n}" for n in range(80)]
    rows = module.Rows(texts=texts, targets=np.arange(80) % 2)
    # A review to choose by that stands in the training file twice, and among the rated ones.
    order = np.random.default_rng(0).permutation(80)
    rows.texts[order[-1]] = rows.texts[order[0]]
    test = module.Rows(texts=texts[:10], targets=rows.targets[:10])
    looks: list[Any] = []

    def read_test(data: Path) -> Any:
        looks.append(test)
        return test

    nsmc = module.TASKS["nsmc"]
    task = replace(nsmc, train=lambda data: rows, test=read_test, needs=())
    monkeypatch.setattr(module, "TASKS", {"nsmc": task})
    others = [f"{text}!" for text in texts[:30]]
    rated = tmp_path / "nsmc" / "reviews_rated.tsv"
    rated.parent.mkdir()
    lines = [f"{n}\t1\t2\t5\t{text}\n" for n, text in enumerate([*others, *texts])]
    rated.write_text("id\tmovie_id\tdate\trating\tdocument\n" + "".join(lines), encoding="utf-8")
    made: list[str] = []

    def note(name: str) -> None:
        make = getattr(module, name)

        def noted(*given: Any) -> Any:
            made.append(name)
            return make(*given)

        monkeypatch.setattr(module, name, noted)

    note("_fit")
    note("_linear")
    output = tmp_path / "results.json"

    def measure(**flags: Any) -> list[dict[str, Any]]:
        model = str(ROOT / "checkpoints" / "malmoi-small")
        flags = {
            "student_seeds": "0,1",
            "teacher_seeds": "0",
            "dev_size": 20,
            "unlabelled": 30,
        } | flags
        flags = {"epochs": 4, "batch_size": 8} | flags
        places = {"data": tmp_path, "work": tmp_path / "work", "results": output}
        places["model"] = model
        module.main(module.SelfTrainingSettings(**places, **flags))
        found: list[dict[str, Any]] = json.loads(output.read_text())["runs"]
        return found

    found = module._reviews(module.SelfTrainingSettings(data=tmp_path, dev_size=20, unlabelled=30))
    assert len(found.labelled.texts) == 59 and set(found.others) == set(others)
    assert not set(found.dev.texts) & {*found.labelled.texts, *found.others}
    with pytest.raises(InputError, match=r"expected a student in .*; train it without --test"):
        measure(test=True)
    # Another process may train the teachers of other seeds.
    assert [row["arm"] for row in measure(student_seeds="")] == ["encoder"]
    arms = ["encoder", "linear", *["teacher"] * len(module.SHARES), "student", "student"]
    done = measure()
    assert [row["arm"] for row in done] == arms
    assert all(row["dev_accuracy"] >= 80 for row in done)
    assert made == ["_fit", "_linear", "_fit", "_fit"]
    capsys.readouterr()
    assert measure() == done and capsys.readouterr().out.count("trained already") == 2
    assert len(made) == 4 and not looks
    students = tmp_path.glob("work/*/1")
    scored = measure(test=True)
    assert [row["seed"] for row in scored[len(done) :]] == [0, 1]
    assert all(row["part"] == "test" for row in scored[len(done) :])
    assert measure(test=True) == scored and len(looks) == 1
    assert (next(students) / "model.safetensors").is_file()
    # Others than these.
    with pytest.raises(InputError, match="expected a student in"):
        measure(test=True, batch_size=32)
    # One that was stopped before its score was written is asked, not trained again.
    setting = json.loads(output.read_text())["setting"]
    output.write_text(json.dumps({"setting": setting, "runs": []}))
    assert [row["arm"] for row in measure()] == arms and len(made) == 4
    # Pseudo-labels of other texts are others.
    rows.texts[order[-2]] += "."
    with pytest.raises(InputError, match="expected results with texts_sha256"):
        measure(test=True)
