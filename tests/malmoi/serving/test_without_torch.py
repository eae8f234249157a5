"""Without torch: the base of the package is what `malmoi serve` and `malmoi predict` need."""

import contextlib
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

from malmoi.__main__ import main
from malmoi.errors import InputError
from malmoi.inference import onnx_exports
from malmoi.inference.classifier import Classifier
from malmoi.inference.linear.linear_part import LinearPart
from tests.malmoi.finetune.conftest import separable
from tests.malmoi.serving.conftest import ENGINE, ROOT, MakeModel, serving

TEXTS = [text for text, _ in separable()]
# Hides what is named, as if it were not installed, then is `malmoi`.
HIDING = """
import sys
hidden = set({hidden!r})
class Hiding:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, *more):
        return None if name.split(".")[0] in hidden else self.finder.find_spec(name, *more)
    def __getattr__(self, name):
        return getattr(self.finder, name)
sys.meta_path[:] = map(Hiding, sys.meta_path)
from malmoi.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def packages_of(*wanted: str) -> set[str]:
    """What `pip install malmoi` brings, with these extras: what it asks for, and so on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found, open_ = set(), [Requirement(line) for line in project["dependencies"]]
    open_.append(Requirement(f"malmoi[{','.join(wanted)}]"))
    while open_:
        one = open_.pop()
        if one.name == "malmoi":
            for extra in one.extras:
                open_ += map(Requirement, project["optional-dependencies"][extra])
            continue
        if canonical(one.name) in found:
            continue
        found.add(canonical(one.name))
        lines = map(Requirement, requires(one.name) or ())
        extras = [*one.extras, ""]
        open_ += [
            line
            for line in lines
            if not line.marker or any(line.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    return found


def program_without(needed: set[str]) -> tuple[str, str]:
    """Arguments of Python that are `malmoi` where only these packages are installed."""
    hidden = {
        module
        for module, packages in packages_distributions().items()
        if not {canonical(name) for name in packages} & {*needed, "malmoi"}
        and module not in ("malmoi", "tests")
    }
    assert "streamlit" in hidden
    return "-c", HIDING.format(hidden=sorted(hidden))


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture
def other(make_model: MakeModel) -> Path:
    """A model that was never exported."""
    return make_model("other", num_hidden_layers=1)


@pytest.fixture
def _no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first flags of a process make tyro import torch where its name is known, as it is here.
    with contextlib.suppress(SystemExit):
        main(["explain", "--help"])
    monkeypatch.setitem(sys.modules, "torch", None)


def test_predict_and_serve_need_nothing_that_the_base_does_not_install(
    classifier_directory: Path, home: Path, tmp_path: Path
) -> None:
    needed = packages_of()
    assert not {"torch", "transformers", "pandas", "scipy", "babel"} & needed
    program = program_without(needed)
    with serving(classifier_directory, "--engine=auto", home=home, program=program) as server:
        found = server.ask("/v1/predict", {"texts": TEXTS}).json["predictions"]
        assert server.ask("/docs").status == server.ask("/metrics").status == 200
        assert server.ask("/health").json["engine"] == ENGINE
    expected = Classifier.load(classifier_directory, ENGINE).predict(TEXTS)
    assert [each["label"] for each in found] == [each.label for each in expected]

    (tmp_path / "글.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    flags = ["predict", "글.txt", "--model", str(classifier_directory), "--output"]
    for output in ("답.csv", "답.xlsx", "답.parquet"):
        done = subprocess.run(
            [sys.executable, *program, *flags, output, f"--engine={ENGINE}"],
            cwd=tmp_path,
            env=os.environ | {"MALMOI_HOME": str(home)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    rows = csv.DictReader((tmp_path / "답.csv").open(encoding="utf-8-sig", newline=""))
    assert [row["label"] for row in rows] == [each.label for each in expected]


def test_kfold_and_the_report_need_nothing_that_train_does_not_install(tmp_path: Path) -> None:
    # Long texts: of those the page of k-fold has sentences of its own.
    lines = [
        f"{' '.join([text] * 40)} {n},{'나' if n % 3 else '가'}" for n, text in enumerate(TEXTS)
    ]
    (tmp_path / "글.csv").write_text("\n".join(["text,label", *lines]), encoding="utf-8")
    program = program_without(packages_of("train"))
    kfold = ["kfold", "--data=글.csv", "--quick", "--folds=2", "--output=run"]
    kfold += ["--set", "linear.frozen_encoder=false"]
    report = ["report", "글.csv", "--model=run/model", "--output=report.html"]
    for command in (kfold, report):
        done = subprocess.run(
            [sys.executable, *program, *command],
            cwd=tmp_path,
            env=os.environ | {"MALMOI_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "report.html").is_file() and (tmp_path / "report.html").is_file()


@pytest.mark.usefixtures("_no_torch")
def test_an_export_of_other_versions_is_taken_where_torch_is_not(
    classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = onnx_exports.entry_path(classifier_directory)
    monkeypatch.setattr(onnx_exports, "_MADE_BY", ("onnxruntime",))
    assert onnx_exports.entry_path(classifier_directory) != before
    for engine in ("onnx-fp32", "onnx-int8"):
        assert Classifier.load(classifier_directory, engine).engine == engine


@pytest.mark.usefixtures("_no_torch")
def test_auto_takes_what_was_the_fastest_somewhere_that_agreed(
    classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALMOI_ENGINE", "auto")
    assert Classifier.load(classifier_directory).engine == "onnx-fp32"
    elsewhere = onnx_exports.measurements_path(classifier_directory) / "fastest-elsewhere.json"
    elsewhere.parent.mkdir()
    rates = {"torch-bf16": 9, "onnx-fp32": 2, "onnx-int8": 5}
    try:
        for int8_agrees, engine in ((True, "onnx-int8"), (False, "onnx-fp32")):
            measured = {
                name: {"texts_per_second": rate, "agrees": name != "onnx-int8" or int8_agrees}
                for name, rate in rates.items()
            }
            values = {"engine": "torch-bf16", "measured": measured}
            elsewhere.write_text(json.dumps(values), encoding="utf-8")
            assert Classifier.load(classifier_directory).engine == engine
    finally:
        shutil.rmtree(elsewhere.parent)


@pytest.mark.usefixtures("other", "_no_torch")
def test_what_needs_torch_says_so_in_one_line(classifier_directory: Path, other: Path) -> None:
    with pytest.raises(InputError, match="the engine torch-fp32 needs torch and transformers"):
        Classifier.load(classifier_directory, "torch-fp32")
    with pytest.raises(InputError, match=r"no ONNX export of .*other in .*onnx, and torch"):
        Classifier.load(other, "onnx-int8")


@pytest.mark.usefixtures("_no_torch")
def test_a_command_that_needs_torch_says_so_in_one_line(
    classifier_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # As kfold.py --quick leaves a classifier over an encoder that is not trained.
    part = LinearPart(
        labels=["꿈", "일기"],
        bias=np.zeros(2, dtype=np.float32),
        ngrams=[],
        vectors=None,
        encoder_weight=0.0,
        head=np.zeros((8, 2), dtype=np.float32),
    )
    part.save(tmp_path)
    output = f"--output={tmp_path / 'out'}"
    for command in (
        ["explain", "꿈", f"--model={tmp_path}"],
        ["export", str(classifier_directory), output],
    ):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert "needs torch and transformers, which are not installed; pip" in said
        assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()
