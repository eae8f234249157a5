"""What benchmarks keep: results and runs of one setting never stand in for another's."""

import hashlib
import importlib
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
import tyro

from benchmarks.result_files import write_result
from malmoi.errors import InputError
from malmoi.flags import parse_flags
from malmoi.text.cleaning.cleaner import CleaningSettings
from malmoi.text.corpus.clean_corpus import write_clean_corpus
from malmoi.text.reading.records import iter_records
from pretrain.config.checks import check
from pretrain.config.settings import PretrainSettings, RunConfig, read_config
from pretrain.data.tokenized import tokenize_corpus

ROOT = Path(__file__).parents[2]


def test_a_result_is_a_text_file_whose_last_line_ends(tmp_path: Path) -> None:
    write_result(tmp_path / "out.json", {"글": 1})
    assert (tmp_path / "out.json").read_text(encoding="utf-8") == '{\n "글": 1\n}\n'
    kept = sorted((ROOT / "benchmarks" / "results").rglob("*.json"))
    assert kept and not [one.name for one in kept if not one.read_bytes().endswith(b"\n")]


def test_the_pictures_are_made_by_a_command_that_starts() -> None:
    command = [sys.executable, "-m", "docs.make_pictures", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "--run" in done.stdout, done.stderr


@pytest.fixture(scope="module")
def downstream() -> ModuleType:
    """benchmarks/quality/downstream.py."""
    return importlib.import_module("benchmarks.quality.downstream")


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


def sizes(**more: object) -> dict[str, object]:
    return {"train_size": 20_000, "dev_size": 20_000, **more}


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("quality", {}),
        ("pretraining_gain", sizes(epochs=4, data="ratings_train.txt")),
        (
            "token_budget",
            sizes(epochs=3, corpus="reviews_rated.tsv.gz", preset="tiny", tokenizer=None),
        ),
        (
            "tokenizer_kinds",
            sizes(epochs=3, corpus="reviews_rated.tsv.gz", preset="tiny", tokens=1_000_000),
        ),
    ],
)
def test_the_recorded_results_can_be_gone_on_with(
    downstream: ModuleType, name: str, setting: dict[str, object]
) -> None:
    assert downstream.Results(ROOT / "benchmarks" / "results" / f"{name}.json", **setting).rows


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("score", ["--epochs", "three"]),
        ("score", ["--learning-rates", "1e-4;3e-4"]),
        ("score", ["--layer-decays", "0.8,"]),
        ("token_budget", ["--tokens", "1M"]),
    ],
)
def test_what_is_no_number_is_said(tmp_path: Path, name: str, flags: list[str]) -> None:
    module = importlib.import_module(f"benchmarks.quality.{name}")
    of = {"score": "QualitySettings", "token_budget": "BudgetSettings"}
    if name == "score":
        flags = [*flags, "--tasks", "memos", "--model", str(ROOT / "checkpoints" / "malmoi-small")]
    output = tmp_path / "results.json"
    settings = tyro.cli(getattr(module, of[name]), args=[*flags, "--output", str(output)])
    with pytest.raises(InputError, match=f"expected {flags[0]} of comma-separated numbers, found"):
        module.main(settings)
    assert not output.exists()


def test_scores_belong_to_weights_and_are_of_one_setting(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    quality = importlib.import_module("benchmarks.quality.score")
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
    quality = importlib.import_module("benchmarks.quality.score")
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


def test_tasks_with_a_dev_file_need_it() -> None:
    tasks = importlib.import_module("benchmarks.quality.tasks").TASKS
    with_dev = {name for name, task in tasks.items() if task.dev is not None}
    assert with_dev == {"korsts", "questions"}
    for name in with_dev:
        assert [file.name.removeprefix("sts-") for file in tasks[name].needs] == [
            *("train.tsv", "dev.tsv", "test.tsv")
        ]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"epochs": "0"}, "--epochs at least 1"),
        ({"epochs": "2.5"}, "--epochs of whole numbers, found 2.5"),
        ({"epochs": "2.5"}, "--epochs of whole numbers, found 2.5"),
        ({"epochs": "nan"}, "--epochs of finite numbers from 0 on, found nan"),
        ({"learning_rates": "3e-4,0"}, "--learning-rate above 0"),
        ({"seeds": -1}, "--seeds of at least 0"),
        ({"dev_size": 0}, "--dev-size of at least 1"),
        ({"linear": True, "random_weights": True}, "so --random-weights has no effect"),
        ({"random_weights": True, "layer_decays": "0.8"}, "found --layer-decays; leave it out"),
        ({"with_linear": True}, "for one label a text and a test file, found memos"),
        ({"with_linear": True, "linear": True}, "so --with-linear has no effect"),
        ({"with_linear": True, "keep": Path("kept")}, "found --with-linear; leave it out"),
    ],
)
def test_no_test_file_is_wasted_on_flags_that_make_no_sense(
    tmp_path: Path, flags: dict[str, Any], message: str
) -> None:
    quality = importlib.import_module("benchmarks.quality.score")
    output = tmp_path / "quality.json"
    settings = quality.QualitySettings(tasks="memos", output=output, **flags)
    with pytest.raises(InputError, match=message):
        quality.main(settings)
    assert not output.exists()


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


def test_a_pretraining_run_that_fails_ends_the_comparison_as_it_ended(
    downstream: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as error:
        downstream.pretrain_once(tmp_path / "run", [], corpus=tmp_path / "nothing.txt")
    assert error.value.code == 2
    assert "nothing.txt" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("flags", "difference"),
    [
        ({"preset": "small", "max_tokens": 2e3}, "--preset tiny, found --preset small"),
        ({"preset": "tiny", "max_tokens": 9e3}, "--max-tokens 2000.0, found --max-tokens 9000.0"),
        ({"preset": "tiny", "max_tokens": 2e3, "seed": 1}, "--seed None, found --seed 1"),
    ],
)
@pytest.mark.parametrize("status", ["running", "finished"])
def test_a_run_of_other_flags_is_not_taken(
    downstream: ModuleType,
    commands: list[list[str]],
    tmp_path: Path,
    status: str,
    flags: dict[str, Any],
    difference: str,
) -> None:
    write_run(tmp_path / "run", status, **flags)
    with pytest.raises(InputError, match="move it away") as error:
        downstream.pretrain_once(
            tmp_path / "run",
            ["--preset", "tiny", "--max-tokens", 2_000],
            corpus=Path("texts.txt"),
        )
    assert difference in str(error.value) and not commands


def generator_size(flags: list[str]) -> str:
    sizes = [flag.partition("=")[2] for flag in flags if flag.startswith("generator.size=")]
    return sizes[0] if sizes else "0.25"


def test_arms_of_an_ablation_differ_in_what_their_group_is_named_for(tmp_path: Path) -> None:
    ablation = importlib.import_module("benchmarks.quality.ablation")
    groups = ablation.GROUPS
    for group in groups.keys() - {"generator size"}:
        assert len({generator_size(flags) for flags in groups[group].values()}) == 1, group
    # Arms of the same flags, in whatever order, have one key and so one run.
    arms = [flags for group in groups.values() for flags in group.values()]
    assert len({" ".join(flags) for flags in arms}) == len({frozenset(flags) for flags in arms})
    for flags in arms:
        check(config_of_flags("--corpus", "texts.txt", *flags))
    runs = [
        {"flags": " ".join(flags), "nsmc": 80.0 + n, "three": 60.0 + n}
        for n, flags in enumerate(arms)
    ]
    ablation._plot(runs, list(groups), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 10_000


def test_copies_and_casts_are_found_by_their_names_in_the_profile() -> None:
    speed = importlib.import_module("benchmarks.speed.pretraining")
    shares = speed.where_time_goes(copy_and_cast, torch.device("cpu"))
    # Of time: beside other processes it was less than 0.8 once.
    assert shares["copies and casts"] > 0.5
    assert shares["matrix products"] == 0


def copy_and_cast() -> int:
    x = torch.zeros(2_000_000)
    y = x.clone()
    for _ in range(50):
        x.to(torch.bfloat16)
        x.copy_(y)
        x.fill_(1.0)
        x.zero_()
    return len(x)


def test_a_turn_of_several_steps_counts_all_of_them() -> None:
    """Its matrix products are those of as many steps."""
    speed = importlib.import_module("benchmarks.speed.pretraining")

    def step() -> int:
        time.sleep(0.004)
        return 7

    tokens, seconds, steps = speed.timed(step, torch.device("cpu"), least=0.5)
    assert steps > 1 and tokens == 7 * steps
    assert seconds >= max(0.5, 0.004 * steps)


def test_speed_is_measured_on_texts_or_on_a_corpus_that_travels(
    tmp_path: Path, comments: list[str]
) -> None:
    """A rented machine has no texts, so ids and tokenizer go there."""
    speed = importlib.import_module("benchmarks.speed.pretraining")
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(comments + [f"{text} 정말" for text in comments]), encoding="utf-8")
    corpus, tokenizer = speed.tokenized_texts(
        speed.PretrainingSpeedSettings(corpus=texts, texts=1_500)
    )
    assert len(corpus) == 1_500
    assert tokenizer(comments[0], add_special_tokens=False).input_ids == list(
        corpus.ids[: corpus.offsets[1]]
    )
    write_clean_corpus(iter_records(texts), tmp_path / "clean", CleaningSettings())
    whole = tokenize_corpus(
        tmp_path / "clean", tokenizer, corpus_sha256="0", max_length=128, cache=tmp_path / "cache"
    )
    settings = speed.PretrainingSpeedSettings(corpus=whole.directory, texts=1_500)
    first, same = speed.tokenized_texts(settings)
    assert same.get_vocab() == tokenizer.get_vocab()
    assert np.array_equal(first.offsets, whole.offsets[:1_501])
    assert np.array_equal(first.ids, whole.ids[: whole.offsets[1_500]])
    few = tmp_path / "few.txt"
    few.write_text("\n".join(comments[:20]), encoding="utf-8")
    with pytest.raises(InputError, match="expected 1,000 texts or more, found 20"):
        speed.tokenized_texts(speed.PretrainingSpeedSettings(corpus=few))


def test_students_learn_from_what_teachers_say_and_meet_the_test_file_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = importlib.import_module("benchmarks.quality.self_training")
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


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"student_seeds": "0;1"}, "--student-seeds of comma-separated seeds, found 0;1"),
        ({"student_seeds": "0,0"}, "--student-seeds of different seeds from 0 on, found 0,0"),
        ({"teacher_seeds": ""}, "--teacher-seeds of at least one seed"),
        ({"batch_size": 0}, "--batch-size at least 1"),
        ({"teacher_epochs": 0}, "--epochs at least 1"),
        ({"unlabelled": 4}, "--unlabelled from 1 to the 2 reviews there are, found 4"),
        ({"dev_size": 9}, "--dev-size from 1 to less than half of 9 reviews"),
    ],
)
def test_no_teacher_is_trained_for_flags_that_make_no_sense(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: dict[str, Any],
    message: str,
) -> None:
    module = importlib.import_module("benchmarks.quality.self_training")
    rows = module.Rows(texts=[f"글 {n}" for n in range(9)], targets=np.arange(9) % 2)
    task = replace(module.TASKS["nsmc"], train=lambda data: rows, needs=())
    monkeypatch.setattr(module, "TASKS", {"nsmc": task})
    rated = tmp_path / "nsmc" / "reviews_rated.tsv"
    rated.parent.mkdir()
    rated.write_text("id\tmovie_id\tdate\trating\tdocument\n1\t1\t2\t5\t하나\n2\t1\t2\t5\t둘\n")
    monkeypatch.setattr(module, "_fit", None)
    flags = {"dev_size": 2, "unlabelled": 2} | flags
    places = {"work": tmp_path / "work", "results": tmp_path / "results.json"}
    model = str(ROOT / "checkpoints" / "malmoi-small")
    with pytest.raises(InputError, match=message):
        module.main(module.SelfTrainingSettings(model=model, data=tmp_path, **places, **flags))
    assert not places["work"].exists() and not places["results"].exists()
