"""The classifier: same answers in any order and batch, and one line for what cannot be loaded."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from transformers import AutoModelForSequenceClassification, ElectraForSequenceClassification

from malmoi import devices
from malmoi.errors import InputError
from malmoi.inference.batching import batches_by_length
from malmoi.inference.classifier import CALIBRATION, Classifier
from malmoi.model_folders import find_classifiers
from malmoi.text.cleaning.cleaner import clean_text
from tests.finetune.conftest import LABELS, make_tokenizer, separable, tiny_config


@pytest.fixture(scope="module")
def classifier(classifier_directory: Path) -> Classifier:
    return Classifier.load(classifier_directory)


@pytest.fixture
def copied(classifier_directory: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(classifier_directory, tmp_path / "copied"))


def some_texts() -> list[str]:
    texts = [text * (1 + index % 3) for index, (text, _) in enumerate(separable())]
    return [*texts, "", "   ", "ㅋㅋㅋㅋㅋㅋ", "😀👍🏽", "x" * 500, texts[0]]


def test_labels_and_name(classifier: Classifier) -> None:
    assert classifier.labels == LABELS
    assert classifier.name == "memos-1"


def test_batches_give_what_one_by_one_gives(
    classifier: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("malmoi.inference.torch_engine.TOKENS_IN_BATCH", {"cpu": 100})
    texts = some_texts()
    together = classifier.predict(texts)
    alone = [classifier.predict([text])[0] for text in texts]
    for one, other in zip(together, alone, strict=True):
        # bf16 products depend a little on the shape of the batch.
        assert one.probabilities == pytest.approx(other.probabilities, abs=0.02)
    assert len({prediction.label for prediction in together}) > 1


def test_what_was_cut_says_so(classifier: Classifier) -> None:
    # A window is 64 tokens, and 64 of them are read.
    tokens = [separable()[0][0].split()[0], "글"]
    words = [" ".join(tokens * 100), " ".join(tokens * 2000)]
    found = classifier.predict(["", *tokens, *words, tokens[0]])
    assert [prediction.cut for prediction in found] == [False, False, False, False, True, False]


def test_equals_the_stock_model_in_float32(
    classifier: Classifier, classifier_directory: Path
) -> None:
    texts = some_texts()
    model = AutoModelForSequenceClassification.from_pretrained(classifier_directory).eval()
    tokenizer = make_tokenizer()
    for text, prediction in zip(texts, classifier.predict(texts), strict=True):
        inputs = tokenizer(clean_text(text), return_tensors="pt", truncation=True, max_length=64)
        with torch.inference_mode():
            expected = torch.softmax(model(**inputs).logits[0], -1).tolist()
        assert list(prediction.probabilities.values()) == pytest.approx(expected, abs=0.05)


def test_chunks_keep_the_order(classifier: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = some_texts()
    whole = classifier.predict(texts)
    monkeypatch.setattr("malmoi.inference.classifier.TEXTS_IN_CHUNK", 7)
    for one, other in zip(whole, classifier.predict(texts), strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=0.02)


def test_probabilities_and_confidence(classifier: Classifier) -> None:
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


@pytest.mark.parametrize("bad", ["0", "-1", "Infinity", "NaN", '"warm"', "null"])
def test_a_temperature_that_divides_nothing_is_refused(copied: Path, bad: str) -> None:
    (copied / CALIBRATION).write_text(f'{{"temperature": {bad}}}')
    found = message(copied)
    assert found.startswith("expected a temperature") and str(copied / CALIBRATION) in found
    assert found.endswith("delete the file to go without")


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


def test_no_texts(classifier: Classifier) -> None:
    assert classifier.predict([]) == []


@pytest.mark.parametrize("one", ["꿈에서 날았다", b"abc"])
def test_one_text_instead_of_several_is_refused(classifier: Classifier, one: str | bytes) -> None:
    with pytest.raises(InputError, match=r"found one; .* predict\(\[text\]\)") as caught:
        classifier.predict(one)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cell", [None, float("nan"), 3, ["꿈"]])
def test_what_is_no_text_is_named_with_its_place(classifier: Classifier, cell: object) -> None:
    with pytest.raises(InputError, match=f"place 1, .* found {type(cell).__name__}"):
        classifier.predict(["꿈에서 날았다", cell])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {"꿈에서 날았다"},
        {"꿈에서 날았다": 1},
        pandas.DataFrame({"글": ["꿈에서 날았다"]}),
        iter(["꿈에서 날았다"]),
    ],
    ids=["None", "set", "dict", "table", "stream"],
)
def test_what_is_no_list_of_texts_is_refused(classifier: Classifier, wrong: Any) -> None:
    with pytest.raises(InputError, match=f"expected a list .* found {type(wrong).__name__}"):
        classifier.predict(wrong)


def test_arrays_and_columns_are_read_by_place(classifier: Classifier) -> None:
    texts = some_texts()
    expected = classifier.predict(texts)
    assert classifier.predict(tuple(texts)) == expected
    assert classifier.predict(np.array(texts)) == expected  # type: ignore[arg-type]
    column = pandas.Series(texts, index=[1e6 + place for place in range(len(texts))])
    assert classifier.predict(column) == expected  # type: ignore[arg-type]


def test_progress_ends_at_the_number_of_texts(classifier: Classifier) -> None:
    seen: list[tuple[int, int]] = []
    classifier.predict(some_texts(), progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (len(some_texts()), len(some_texts()))


@pytest.mark.parametrize("lengths", [[], [1], [5, 1, 3, 3, 1], [500, 2, 2], list(range(1, 60))])
def test_batches_hold_every_place_once(lengths: list[int]) -> None:
    batches = list(batches_by_length(lengths, 64))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    for batch in batches:
        tokens = len(batch) * max(lengths[place] for place in batch)
        assert tokens <= 64 or len(batch) == 1


def message(path: Path | str) -> str:
    with pytest.raises(InputError) as caught:
        Classifier.load(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("wrong", [None, 3, ["malmoi-small-memos"]])
def test_what_is_no_name_of_a_model_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=f"expected the name, .* found {type(wrong).__name__}"):
        Classifier.load(wrong)


def test_missing_directory(tmp_path: Path) -> None:
    path = tmp_path / "none"
    assert message(path) == f"no model directory {path}; check the path"


def test_missing_directory_below_one_that_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    assert message("runs/none") == "no model directory runs/none; check the path"


def test_no_configuration(copied: Path) -> None:
    (copied / "config.json").unlink()
    assert message(copied) == f"{copied} is not a model: it has no config.json"


def test_no_weights_and_pickled_ones_do_not_count(copied: Path) -> None:
    (copied / "model.safetensors").rename(copied / "pytorch_model.bin")
    assert message(copied).startswith(f"{copied} has no weights: expected model.safetensors")


@pytest.mark.parametrize("size", [0, 4, 1_000, 50_000])
def test_damaged_weights(copied: Path, size: int) -> None:
    os.truncate(copied / "model.safetensors", size)
    assert message(copied).startswith(f"the weights in {copied} are damaged (")


def test_damaged_configuration(copied: Path) -> None:
    (copied / "config.json").write_text('{"model_type": ')
    assert message(copied).startswith(f"cannot load the model of {copied}: ")


@pytest.mark.parametrize(
    "change",
    [
        {"id2label": ["꿈", "일기"]},
        {"num_attention_heads": 0},
        {"hidden_size": "x"},
    ],
)
def test_configuration_that_says_something_else(copied: Path, change: dict[str, object]) -> None:
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps(config | change))
    assert message(copied).startswith(f"cannot load the model of {copied}: ")


@pytest.mark.parametrize(
    "change", [{"model": {"type": "Foo"}}, {"normalizer": {"type": "New"}}, {"version": "9"}]
)
def test_tokenizer_of_another_version(copied: Path, change: dict[str, object]) -> None:
    """The library raises a bare Exception for it."""
    tokenizer = json.loads((copied / "tokenizer.json").read_text())
    (copied / "tokenizer.json").write_text(json.dumps(tokenizer | change))
    assert message(copied).startswith(f"cannot load the tokenizer of {copied}: ")


def test_labels_that_are_numbers(copied: Path) -> None:
    config = json.loads((copied / "config.json").read_text())
    config["id2label"] = {place: int(place) for place in config["id2label"]}
    (copied / "config.json").write_text(json.dumps(config))
    assert Classifier.load(copied).labels[:2] == ["0", "1"]


def test_no_tokenizer(copied: Path) -> None:
    for file in copied.glob("tokenizer*"):
        file.unlink()
    assert "tokenizer" in message(copied)


def test_tokenizer_that_takes_hangul_apart(copied: Path) -> None:
    """As one that strips accents does (google-research/bert#228)."""
    tokenizer = json.loads((copied / "tokenizer.json").read_text())
    (copied / "tokenizer.json").write_text(json.dumps(tokenizer | {"normalizer": {"type": "NFD"}}))
    assert f"keeps Hangul syllables whole, found one at {copied} that" in message(copied)


def test_tokenizer_of_another_model(copied: Path) -> None:
    tokenizer = make_tokenizer()
    tokenizer.add_tokens(["망아지", "송아지"])
    tokenizer.save_pretrained(copied)
    size = len(make_tokenizer())
    assert message(copied) == (
        f"tokenizer and model of {copied} do not belong together: the tokenizer has ids up to "
        f"{size + 1}, the model {size} embeddings"
    )


@pytest.mark.parametrize("names", [LABELS[:-1], [*LABELS, "하나 더"]])
@pytest.mark.parametrize("engine", ["torch-fp32", "onnx-fp32", "auto"])
def test_more_or_fewer_names_than_outputs(copied: Path, names: list[str], engine: str) -> None:
    config = json.loads((copied / "config.json").read_text())
    del config["label2id"]
    named = {"id2label": {str(place): name for place, name in enumerate(names)}}
    (copied / "config.json").write_text(json.dumps(config | named))
    with pytest.raises(InputError) as caught:
        Classifier.load(copied, engine)
    assert str(caught.value) == (
        f"expected weights for the {len(names)} labels in config.json of {copied}, found weights "
        f'for {len(LABELS)}; name as many under "id2label", in the order of training'
    )


def test_weights_of_another_size(copied: Path) -> None:
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 32}))
    assert "with the shape (32, " in message(copied)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"1": "꿈", "0": "꿈"}, "a different name for every label .* found '꿈' for 2"),
        ({"0": " "}, "a different name for every label .* found ' ' for 1"),
        ({"9": "꿈", "0": None}, "the ids 0 to 2 .* found 1, 2, 9"),
    ],
)
def test_labels_that_cannot_be_told_apart(
    copied: Path, change: dict[str, str | None], line: str
) -> None:
    config = json.loads((copied / "config.json").read_text())
    del config["label2id"]
    found = {key: name for key, name in (config["id2label"] | change).items() if name is not None}
    (copied / "config.json").write_text(json.dumps(config | {"id2label": found}))
    with pytest.raises(InputError, match=f"expected {line}"):
        Classifier.load(copied)


def test_labels_without_names(copied: Path) -> None:
    config = json.loads((copied / "config.json").read_text())
    del config["id2label"], config["label2id"]
    (copied / "config.json").write_text(json.dumps({**config, "num_labels": 3}))
    assert message(copied).startswith(f"the labels of {copied} have no names (found LABEL_0, ")


def test_an_encoder_is_not_a_classifier(encoder: Path) -> None:
    assert message(encoder).startswith(f"{encoder} is not a finished classifier: its weights lack")


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


@pytest.mark.parametrize("bf16", [True, False], ids=["products in bf16", "in fp32"])
@pytest.mark.parametrize("saved_as", [torch.bfloat16, torch.float16])
def test_loaded_from_half_precision(
    saved_as: torch.dtype, bf16: bool, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "prefers_bf16", lambda device: bf16)
    config = tiny_config(make_tokenizer(), id2label=dict(enumerate(LABELS)))
    ElectraForSequenceClassification(config).to(saved_as).save_pretrained(copied)
    assert len(Classifier.load(copied).predict(["꿈에서 하늘을 날았다"])) == 1
