"""An exported folder by its Hub id: what `malmoi push` has sent is what is downloaded."""

from collections.abc import Callable
from pathlib import Path

from malmoi import Classifier, cache
from tests.malmoi.finetune.conftest import separable
from tests.malmoi.pretrain.model.test_hub_checkpoints import NAME, Hub

Exported = Callable[[Path], Path]


def test_the_networks_come_along(
    downloads: Hub, exported: Exported, classifier_directory: Path
) -> None:
    folder = exported(classifier_directory)
    downloads.branches["main"] = {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")
    }
    texts = [text for text, _ in separable()]
    found = Classifier.load(NAME, "onnx-int8").predict(texts)
    assert found == Classifier.load(folder, "onnx-int8").predict(texts)
    assert not cache.CACHE.exists()  # nothing was exported again
