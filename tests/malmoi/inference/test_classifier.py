"""The classifier: same answers in any order and batch, and one line for what cannot be loaded."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from transformers import AutoModelForSequenceClassification, ElectraForSequenceClassification

from malmoi import devices
from malmoi.errors import InputError
from malmoi.inference.calibration import CALIBRATION
from malmoi.inference.classifier import Classifier
from malmoi.model_folders import find_classifiers
from tests.malmoi.finetune.conftest import LABELS, make_tokenizer, separable, tiny_config


@pytest.fixture(scope="module")
def classifier(classifier_directory: Path) -> Classifier:
    return Classifier.load(classifier_directory)


@pytest.fixture
def copied(classifier_directory: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(classifier_directory, tmp_path / "copied"))


def some_texts() -> list[str]:
    texts = [text * (1 + index % 3) for index, (text, _) in enumerate(separable())]
    return [*texts, "", "   ", "ㅋㅋㅋㅋㅋㅋ", "😀👍🏽", "x" * 500, texts[0]]


def test_what_was_cut_says_so(classifier: Classifier) -> None:
    # A window is 64 tokens, and 64 of them are read.
    tokens = [separable()[0][0].split()[0], "글"]
    words = [" ".join(tokens * 100), " ".join(tokens * 2000)]
    found = classifier.predict(["", *tokens, *words, tokens[0]])
    assert [prediction.cut for prediction in found] == [False, False, False, False, True, False]


def test_name_labels_and_probabilities(classifier: Classifier) -> None:
    assert (classifier.name, classifier.labels) == ("memos-1", LABELS)
    assert classifier.predict([]) == []
    for prediction in classifier.predict(some_texts()):
        assert sum(prediction.probabilities.values()) == pytest.approx(1, abs=1e-5)
        assert prediction.confidence == max(prediction.probabilities.values())
        assert list(prediction.probabilities) == LABELS


def test_probabilities_are_softened_by_the_temperature_kept_beside_the_weights(
    classifier: Classifier, copied: Path
) -> None:
    (copied / CALIBRATION).write_text('{"temperature": 2.0}')
    texts = some_texts()
    for plain, soft in zip(
        classifier.predict(texts), Classifier.load(copied).predict(texts), strict=True
    ):
        assert soft.label == plain.label
        roots = np.sqrt(list(plain.probabilities.values()))
        assert list(soft.probabilities.values()) == pytest.approx(roots / roots.sum(), abs=1e-4)


def test_weights_that_are_no_numbers_are_refused(copied: Path) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(copied)
    model.classifier.out_proj.weight.data[0, 0] = float("nan")
    model.save_pretrained(copied)
    with pytest.raises(InputError, match=r"found NaN: .* make it again") as caught:
        Classifier.load(copied).predict(["꿈에서 날았다"])
    assert "\n" not in str(caught.value)


def test_texts_are_cleaned_as_in_training(classifier: Classifier) -> None:
    raw, clean = classifier.predict(["꿈에서  ㅋㅋㅋㅋㅋ\u200b", "꿈에서 ㅋㅋ"])
    assert raw == clean


def test_what_is_no_list_of_texts_is_refused(classifier: Classifier) -> None:
    text = "꿈에서 날았다"
    wrongs: tuple[Any, ...] = (None, {text}, {text: 1}, pandas.DataFrame({"글": [text]}))
    for wrong in wrongs:
        with pytest.raises(InputError, match=f"expected a list .* found {type(wrong).__name__}"):
            classifier.predict(wrong)
    one: Any
    for one in (text, b"abc"):
        with pytest.raises(InputError, match=r"found one; .* predict\(\[text\]\)") as caught:
            classifier.predict(one)
        assert "\n" not in str(caught.value)
    cell: Any
    for cell in (None, float("nan"), 3, [text]):
        with pytest.raises(InputError, match=f"place 1, .* found {type(cell).__name__}"):
            classifier.predict([text, cell])


def test_arrays_and_columns_are_read_by_place(classifier: Classifier) -> None:
    texts = some_texts()
    expected = classifier.predict(texts)
    assert classifier.predict(tuple(texts)) == expected
    assert classifier.predict(np.array(texts)) == expected
    column = pandas.Series(texts, index=[1e6 + place for place in range(len(texts))])
    assert classifier.predict(column) == expected


def test_progress_ends_at_the_number_of_texts(classifier: Classifier) -> None:
    seen: list[tuple[int, int]] = []
    classifier.predict(some_texts(), progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (len(some_texts()), len(some_texts()))


def message(path: Path | str, *engine: str) -> str:
    with pytest.raises(InputError) as caught:
        Classifier.load(path, *engine)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_no_model_is_refused(
    tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong: Any
    for wrong in (None, 3, ["malmoi-small-memos"]):
        with pytest.raises(InputError, match=f"expected the name, .* {type(wrong).__name__}"):
            Classifier.load(wrong)
    assert str(tmp_path / "none") in message(tmp_path / "none")
    # Below a folder that exists it is no name of the Hub.
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    assert message("runs/none").startswith("no model directory runs/none")
    assert message(encoder).startswith(f"{encoder} is not a finished classifier")


def changed(file: str, **changes: Any) -> Callable[[Path], None]:
    """A change of a JSON file of a model; what is None goes."""

    def change(model: Path) -> None:
        values = json.loads((model / file).read_text()) | changes
        kept = {key: value for key, value in values.items() if value is not None}
        (model / file).write_text(json.dumps(kept))

    return change


def named(*names: str, **more: Any) -> Callable[[Path], None]:
    """Other names of the labels."""
    ids = {str(place): name for place, name in enumerate(names)} | more
    return changed("config.json", label2id=None, id2label=ids)


def of_another_tokenizer(model: Path) -> None:
    tokenizer = make_tokenizer()
    tokenizer.add_tokens(["망아지", "송아지"])
    tokenizer.save_pretrained(model)


def without_tokenizer(model: Path) -> None:
    for file in model.glob("tokenizer*"):
        file.unlink()


DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no configuration": (lambda model: (model / "config.json").unlink(), "config.json"),
    "half a configuration": (
        lambda model: (model / "config.json").write_text('{"model_type": '),
        "cannot load the model of ",
    ),
    "two names": (changed("config.json", id2label=["꿈", "일기"]), "cannot load the model of "),
    "no heads": (changed("config.json", num_attention_heads=0), "cannot load the model of "),
    "size in words": (changed("config.json", hidden_size="x"), "cannot load the model of "),
    "other size": (changed("config.json", max_position_embeddings=32), "the shape (32, "),
    "pickled weights": (
        lambda model: (model / "model.safetensors").rename(model / "pytorch_model.bin"),
        "has no weights: expected model.safetensors",
    ),
    **{
        f"weights of {size} bytes": (
            lambda model, size=size: os.truncate(model / "model.safetensors", size),
            "are damaged (",
        )
        for size in (0, 4, 1_000, 50_000)
    },
    # The library raises a bare Exception for these three.
    **{
        f"tokenizer with another {key}": (
            changed("tokenizer.json", **{key: value}),
            "cannot load the tokenizer of ",
        )
        for key, value in (("model", {"type": "Foo"}), ("normalizer", {"type": "New"}))
    },
    "tokenizer of version 9": (
        changed("tokenizer.json", version="9"),
        "cannot load the tokenizer of ",
    ),
    "no tokenizer": (without_tokenizer, "tokenizer"),
    # As one that strips accents does (google-research/bert#228).
    "syllables taken apart": (
        changed("tokenizer.json", normalizer={"type": "NFD"}),
        "Hangul syllables whole",
    ),
    "another tokenizer": (
        of_another_tokenizer,
        f"ids up to {len(make_tokenizer()) + 1}, the model {len(make_tokenizer())} embeddings",
    ),
    "equal names": (named("꿈", "꿈", LABELS[2]), "'꿈' for 2"),
    "an empty name": (named(" ", *LABELS[1:]), "' ' for 1"),
    "a gap": (
        lambda model: changed(
            "config.json", label2id=None, id2label={"1": "일기", "2": "일정", "9": "꿈"}
        )(model),
        "the ids 0 to 2 ",
    ),
    "no names": (
        changed("config.json", label2id=None, id2label=None, num_labels=3),
        "have no names (found LABEL_0, ",
    ),
    **{
        f"a temperature of {value}": (
            lambda model, value=value: (model / CALIBRATION).write_text(
                f'{{"temperature": {value}}}'
            ),
            "expected a temperature",
        )
        for value in ("0", "-1", "Infinity", "NaN", '"warm"', "null")
    },
}


def test_a_damaged_model_is_one_line_with_its_folder(
    classifier_directory: Path, tmp_path: Path
) -> None:
    for name, (damage, fact) in DAMAGES.items():
        model = shutil.copytree(classifier_directory, tmp_path / name)
        damage(model)
        found = message(model)
        assert fact in found and str(model) in found, (name, found)


def test_more_or_fewer_names_than_outputs(copied: Path) -> None:
    for names in (LABELS[:-1], [*LABELS, "하나 더"]):
        named(*names)(copied)
        for engine in ("torch-fp32", "onnx-fp32", "auto"):
            found = message(copied, engine)
            assert f"for the {len(names)} labels in config.json of {copied}" in found, engine
            assert f"for {len(LABELS)}; " in found, engine


def test_labels_that_are_numbers(copied: Path) -> None:
    changed("config.json", id2label={str(place): place for place in range(len(LABELS))})(copied)
    assert Classifier.load(copied).labels[:2] == ["0", "1"]


def test_find_classifiers(classifier_directory: Path, encoder: Path, tmp_path: Path) -> None:
    assert find_classifiers(tmp_path) == []
    runs = tmp_path / "runs" / "finetune"
    for age, name in enumerate(["new", "old", ".hidden", "unreported", "unweighted"]):
        shutil.copytree(classifier_directory, runs / name / "model")
        (runs / name / "report.json").write_text("{}")
        os.utime(runs / name / "report.json", (1_000_000 - age, 1_000_000 - age))
    (runs / "unreported" / "report.json").unlink()
    (runs / "unweighted" / "model" / "model.safetensors").unlink()
    released = tmp_path / "checkpoints"
    shutil.copytree(classifier_directory, released / "reviews")
    shutil.copytree(encoder, released / "encoder")
    assert find_classifiers(tmp_path) == [
        runs / "new" / "model",
        runs / "old" / "model",
        released / "reviews",
    ]


def test_loaded_from_half_precision(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for saved_as in (torch.bfloat16, torch.float16):
        config = tiny_config(make_tokenizer(), id2label=dict(enumerate(LABELS)))
        ElectraForSequenceClassification(config).to(saved_as).save_pretrained(copied)
        for bf16 in (True, False):
            monkeypatch.setattr(devices, "prefers_bf16", lambda device, bf16=bf16: bf16)
            assert len(Classifier.load(copied).predict(["꿈에서 하늘을 날았다"])) == 1, saved_as
