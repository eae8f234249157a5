"""`import malmoi`: what it gives, and what it does not load."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import malmoi
from malmoi.__main__ import main
from malmoi.installed import need

ROOT = Path(__file__).parents[2]


def loaded_by(line: str) -> set[str]:
    """The modules that a line of Python leaves loaded."""
    code = f"{line}; import sys; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_what_is_imported_loads_no_more_than_it_needs() -> None:
    for line, unwanted in (
        ("import malmoi", {"torch", "transformers", "pandas", "numpy", "tyro"}),
        ("from malmoi import clean_text", {"torch", "transformers"}),
        (
            "from malmoi import Classifier",
            {"pretrain", "tokenizer", "finetune", "kiwipiepy", "pandas", "sklearn"}
            | {"torch", "transformers", "onnxruntime", "huggingface_hub"},
        ),
        ("from malmoi import cross_validate, evaluate", {"torch", "transformers", "pandas"}),
    ):
        assert not loaded_by(line) & unwanted, line


def test_what_is_public_is_there_and_nothing_else() -> None:
    more = {"cross_validate", "evaluate", "report"}
    assert set(dir(malmoi)) == {"Classifier", "InputError", "Prediction", "clean_text"} | more
    for name in malmoi.__all__:
        assert getattr(malmoi, name) is not None
    with pytest.raises(AttributeError, match="Klassifier"):
        malmoi.Klassifier  # noqa: B018


def test_the_version_is_that_of_the_code_installed_or_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert malmoi.__version__ == project["version"]
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"malmoi {project['version']}\n"

    # A copy of the package alone, as pip puts it somewhere, with and without its metadata.
    shutil.copytree(ROOT / "malmoi", tmp_path / "malmoi", ignore=shutil.ignore_patterns("*.pyc"))
    metadata = tmp_path / "malmoi-9.8.7.dist-info"
    command = [sys.executable, "-S", "-c", "import malmoi; print(malmoi.__version__)"]
    for expected in ("unknown", "9.8.7"):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={})
        assert done.stdout.strip() == expected, done.stderr
        metadata.mkdir(exist_ok=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: malmoi\nVersion: 9.8.7\n")


def test_a_released_model_goes_by_its_name_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MALMOI_HOME", str(ROOT))
    found = malmoi.Classifier.load("malmoi-medium-reviews")
    assert found.name == "malmoi-medium-reviews"
    (prediction,) = found.predict(["재미있고 배우들 연기도 훌륭해요. 강추!"])
    assert prediction.label == "긍정"


def test_an_interrupt_waits_until_a_package_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhole = True\n"
    (tmp_path / "interrupted_package.py").write_text(lines)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        need("this", "interrupted_package", instead="")
    assert sys.modules.pop("interrupted_package").whole
