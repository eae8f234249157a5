"""Small models, folders exported from them, and transformers.js where it is installed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.benchmarks.encoder_alone import encoder_alone
from malmoi import cache
from malmoi.publishing.folder import export_folder
from tests.malmoi.inference.conftest import (
    classifier_directory,
    linear_model,
    make_model,
    pairs_model,
    several_labels_model,
    values_model,
)
from tests.malmoi.pretrain.model.test_hub_checkpoints import hub as downloads

__all__ = [
    "classifier_directory",
    "downloads",
    "linear_model",
    "make_model",
    "pairs_model",
    "several_labels_model",
    "values_model",
]

ROOT = Path(__file__).parents[3]
# Others read its encoder only: what they say is compared with that.
RELEASED = encoder_alone(str(ROOT / "checkpoints" / "malmoi-medium-reviews"))
# Made by: npm install --prefix runs/npm --ignore-scripts @huggingface/transformers@4.3.1
MODULES = ROOT / "runs" / "npm" / "node_modules"

Exported = Callable[[Path], Path]


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cache, "CACHE", tmp_path / "cache")


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """The exported folder of a model; made once."""
    made: dict[Path, Path] = {}

    def export(source: Path) -> Path:
        if source not in made:
            made[source] = tmp_path_factory.mktemp("exported") / source.name
            export_folder(source, made[source])
        return made[source]

    return export


@pytest.fixture(scope="session")
def released_folder(exported: Exported) -> Path:
    """The encoder of the released classifier of reviews, exported."""
    return exported(RELEASED)


@pytest.fixture(scope="session")
def browser_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `transformers.js` of a page that is used without a network."""
    library = MODULES / "@huggingface" / "transformers" / "dist" / "transformers.min.js"
    if not library.is_file():
        pytest.skip(
            "transformers.js is not installed: npm install --prefix runs/npm --ignore-scripts "
            "@huggingface/transformers@4.3.1"
        )
    folder = tmp_path_factory.mktemp("library") / "transformers.js"
    folder.mkdir()
    for file in (library, *(MODULES / "onnxruntime-web" / "dist").glob("ort-wasm*")):
        shutil.copy(file, folder)
    return folder
