"""Engines: all give the answers of the stock model; exports are found, made again, and light."""

import errno
import json
import os
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

from malmoi import cache
from malmoi.__main__ import main
from malmoi.errors import InputError
from malmoi.inference import engine_choice, engine_comparison, onnx_exporting
from malmoi.inference.batching import tokenize_all
from malmoi.inference.classifier import Classifier
from malmoi.inference.description import ModelDescription
from malmoi.inference.onnx_exports import FILES, entry_path, find_exported, read_measurement
from malmoi.inference.prediction import LabelsPrediction, ValuePrediction
from malmoi.inference.tokenizing import FastTokenizer, serialized_tokenizer
from malmoi.transformers_models import load_tokenizer
from tests.malmoi.finetune.conftest import LABELS, separable

ROOT = Path(__file__).parents[3]
RELEASED = ROOT / "checkpoints" / "malmoi-medium-reviews"
# Largest difference of a probability between a text alone and in a batch, as the class says.
TOLERANCE = {"torch-fp32": 1e-5, "torch-bf16": 0.02, "onnx-fp32": 1e-5, "onnx-int8": 0.05}
ODD = [
    "",
    "   ",
    "\x00",
    "\ud83d",
    "ㅋㅋㅋㅋㅋㅋ",
    "😀👍🏽",
    "ㅎ",
    "꿈\n에서",
    "x" * 1_000_000,
    "가" * 5_000,
    "꿈에서 하늘을 날았다 " * 30,
]


def texts() -> list[str]:
    return [text * (1 + place % 3) for place, (text, _) in enumerate(separable())] + ODD


@pytest.mark.parametrize("engine", TOLERANCE)
def test_an_engine_gives_what_the_stock_model_gives(
    engine: str, classifier_directory: Path
) -> None:
    classifier = Classifier.load(classifier_directory, engine)
    assert classifier.engine == engine
    model = AutoModelForSequenceClassification.from_pretrained(classifier_directory).eval()
    tokenizer = load_tokenizer(classifier_directory)
    known = [text for text, _ in separable()]
    expected = []
    for text in known:
        with torch.inference_mode():
            logits = model(**tokenizer(text, return_tensors="pt")).logits[0]
        expected.append(torch.softmax(logits, -1).tolist())
    found = [list(one.probabilities.values()) for one in classifier.predict(known)]
    # The weights of this model are large, and so are the errors of few bits.
    allowed = {"torch-bf16": 0.05, "onnx-int8": 0.15}.get(engine, 1e-4)
    assert np.abs(np.array(found) - np.array(expected)).max() < allowed


@pytest.mark.parametrize(
    ("engine", "released", "tolerance"),
    [
        *(
            (engine, None, TOLERANCE[engine])
            for engine in ("torch-fp32", "torch-bf16", "onnx-fp32")
        ),
        # With random weights the logits are large, and so is what int8 loses of them.
        ("onnx-int8", RELEASED.with_name("malmoi-small-memos"), TOLERANCE["onnx-int8"]),
        # Twelve layers round more often than four.
        ("onnx-int8", RELEASED, 0.12),
    ],
)
def test_a_text_has_the_same_answer_alone_and_in_any_batch(
    engine: str,
    released: Path | None,
    tolerance: float,
    classifier_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = released or classifier_directory
    classifier = Classifier.load(model, engine)
    together = classifier.predict(texts())
    monkeypatch.setattr("malmoi.inference.inputs.TEXTS_IN_CHUNK", 5)
    pieces = list(classifier.predict_iter(reversed(texts())))[::-1]
    alone = [classifier.predict([text])[0] for text in texts()]
    for one, other, third in zip(together, alone, pieces, strict=True):
        for label in classifier.labels:
            values = [found.probabilities[label] for found in (one, other, third)]
            assert max(values) - min(values) <= tolerance
        assert one.cut == other.cut == third.cut


@pytest.mark.parametrize("engine", ["torch-fp32", "onnx-int8"])
def test_threads_share_a_classifier(engine: str, classifier_directory: Path) -> None:
    classifier = Classifier.load(classifier_directory, engine)
    expected = [found.label for found in classifier.predict(texts())]
    gate = threading.Barrier(4)

    def work(number: int) -> list[str]:
        gate.wait()
        if number % 2:
            return [found.label for found in classifier.predict_iter(iter(texts()))]
        return [found.label for found in classifier.predict(texts())]

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(work, range(4)))
    for labels in answers:
        same = sum(one == other for one, other in zip(labels, expected, strict=True))
        assert same >= len(expected) - 2  # ties of int8


def test_the_direct_tokenizer_gives_the_ids_of_transformers(classifier_directory: Path) -> None:
    tokenizer = load_tokenizer(classifier_directory)
    description = ModelDescription(
        labels=LABELS,
        gives="label",
        pairs=None,
        thresholds=[],
        max_length=20,
        pad=0,
        token_types=True,
    )
    serialized = serialized_tokenizer(tokenizer)
    assert serialized is not None
    direct = FastTokenizer(serialized, description)
    given = [text.replace("\ud83d", "") for text in texts()] + ["[SEP] 꿈 [MASK]"]
    for pairs in (None, given[::-1]):
        expected, found = tokenize_all(tokenizer, given, 20, pairs=pairs), direct(given, pairs)
        assert found.flat.tolist() == expected.flat.tolist()
        assert found.offsets.tolist() == expected.offsets.tolist()
        assert found.was_cut.tolist() == expected.was_cut.tolist()
        assert (found.texts, expected.texts) == (len(given), len(given))
        assert (len(found.lengths) > len(given)) == (pairs is None)
        if pairs is not None:
            assert found.second_from is not None and expected.second_from is not None
            assert found.second_from.tolist() == expected.second_from.tolist()
        for place in range(0, len(given), 7):
            alone = direct([given[place]], None if pairs is None else [pairs[place]])
            rows, _ = expected.rows_of(np.array([place]))
            start, end = expected.offsets[rows[0]], expected.offsets[rows[-1] + 1]
            assert alone.flat.tolist() == expected.flat[start:end].tolist()
            assert len(alone.lengths) == len(rows)
            assert alone.cut == expected.was_cut[place]


@pytest.mark.parametrize("engine", ["torch-fp32", "onnx-fp32"])
def test_several_labels(engine: str, several_labels_model: Path) -> None:
    found = Classifier.load(several_labels_model, engine).predict(texts())
    for prediction in found:
        assert isinstance(prediction, LabelsPrediction)
        limits = zip(prediction.probabilities.values(), (0.3, 0.5, 0.9), strict=True)
        assert [label in prediction.labels for label in LABELS] == [p >= t for p, t in limits]
        assert prediction.label == ", ".join(prediction.labels)
    assert len({prediction.label for prediction in found}) > 1


def test_several_labels_by_a_temperature_and_by_thresholds_that_are_just_reached(
    several_labels_model: Path, tmp_path: Path
) -> None:
    copied = shutil.copytree(several_labels_model, tmp_path / "copied")
    plain = Classifier.load(copied).predict(texts())
    (copied / "calibration.json").write_text('{"temperature": 2.0}')
    config = json.loads((copied / "config.json").read_text("utf-8"))
    reached = list(Classifier.load(copied).predict(texts())[0].probabilities.values())
    (copied / "config.json").write_text(json.dumps(config | {"thresholds": reached}))
    soft = Classifier.load(copied).predict(texts())
    assert soft[0].label == ", ".join(LABELS)
    for before, after in zip(plain, soft, strict=True):
        p, q = (np.array(list(one.probabilities.values())) for one in (before, after))
        assert np.log(q / (1 - q)) == pytest.approx(np.log(p / (1 - p)) / 2, abs=1e-4)


@pytest.mark.parametrize("engine", ["torch-fp32", "onnx-fp32"])
def test_pairs_and_values(engine: str, pairs_model: Path, values_model: Path) -> None:
    ones, others = texts(), texts()[::-1]
    classifier = Classifier.load(pairs_model, engine)
    stream = zip(ones, others, strict=True)
    found = classifier.predict(ones, others)
    for one, other in zip(found, classifier.predict_iter(stream), strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
    assert found != classifier.predict(others, ones)
    with pytest.raises(InputError, match="reads two texts at a time; give the second ones"):
        classifier.predict(ones)
    with pytest.raises(InputError, match="reads two texts at a time"):
        list(classifier.predict_iter(ones))
    with pytest.raises(InputError, match=f"for each of {len(ones)}, found 1"):
        classifier.predict(ones, ["하나"])
    (value,) = Classifier.load(values_model, engine).predict(["꿈"], ["꿈"])
    assert isinstance(value, ValuePrediction) and value.label == f"{value.value:.6g}"


def test_a_pair_that_lacks_a_text_gets_no_label(pairs_model: Path) -> None:
    rows = Classifier.load(pairs_model).predict_rows(
        ["하나", "", "하나", " "], ["둘", "둘", "", ""]
    )
    assert [any(cell is not None for cell in row) for row in rows] == [True, False, False, False]


def test_pairs_for_a_model_of_one_text(several_labels_model: Path) -> None:
    with pytest.raises(InputError, match="reads one text at a time"):
        Classifier.load(several_labels_model).predict(["하나"], ["둘"])


def test_equal_texts_are_computed_once(
    classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier = Classifier.load(classifier_directory)
    rows = 0
    logits = classifier._engine.logits

    def counting(batch: Any) -> np.ndarray:
        nonlocal rows
        rows += len(batch.input_ids)
        return logits(batch)

    monkeypatch.setattr(classifier._engine, "logits", counting)
    monkeypatch.setattr("malmoi.inference.inputs.TEXTS_IN_CHUNK", 3)
    classifier.predict(["꿈에서", "꿈에서 ", "내일", *["꿈에서"] * 10])
    assert rows == 2


def test_a_stream_is_read_a_little_ahead_only(
    classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("malmoi.inference.inputs.TEXTS_IN_CHUNK", 10)
    taken = 0

    def endless() -> Any:
        nonlocal taken
        while True:
            taken += 1
            yield "꿈에서 하늘을 날았다"

    stream = Classifier.load(classifier_directory).predict_iter(endless())
    for _ in range(25):
        next(stream)
    assert taken <= 100
    stream.close()


def test_what_a_stream_gave_before_it_failed_is_predicted(
    classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("malmoi.inference.inputs.TEXTS_IN_CHUNK", 10)
    for before in (0, 3, 10, 25, 64):

        def failing(before: int = before) -> Any:
            yield from (f"꿈에서 {number}번 날았다" for number in range(before))
            raise ConnectionError("the queue is gone")

        found = []
        with pytest.raises(ConnectionError, match="the queue is gone"):
            for prediction in Classifier.load(classifier_directory).predict_iter(failing()):
                found.append(prediction)
        assert len(found) == before


def test_pickled_it_is_loaded_again_from_where_it_was(
    classifier_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(classifier_directory.parent)
    classifier = Classifier.load(classifier_directory.name, "onnx-fp32", threads=1)
    assert classifier.name in repr(classifier) and "onnx-fp32" in repr(classifier)
    kept = pickle.dumps(classifier)
    assert len(kept) < 1_000
    monkeypatch.chdir(tmp_path)
    again = pickle.loads(kept)
    assert (again.engine, again.labels) == (classifier.engine, classifier.labels)
    assert again.predict(["꿈에서 날았다"]) == classifier.predict(["꿈에서 날았다"])


def test_threads_are_counted(classifier_directory: Path) -> None:
    for threads in (0, -1, 1.5, "2"):
        with pytest.raises(InputError, match="expected threads, a number from 1 on"):
            Classifier.load(classifier_directory, threads=threads)


def test_what_yields_no_texts_is_no_stream(classifier_directory: Path) -> None:
    pandas = pytest.importorskip("pandas")
    classifier = Classifier.load(classifier_directory)
    table: Any = pandas.DataFrame({"글": ["꿈"]})
    nothing: Any = None
    for wrong in (nothing, table):
        with pytest.raises(InputError, match=f"found {type(wrong).__name__}; give what yields"):
            list(classifier.predict_iter(wrong))
    for item in (("꿈",), ("꿈", "꿈", "꿈")):
        stream: Any = ["꿈", item]
        with pytest.raises(InputError, match=f"found {len(item)} at place 1, .* tuples of two"):
            list(classifier.predict_iter(stream))


def test_a_forked_process_predicts_with_torch_as_its_parent(classifier_directory: Path) -> None:
    """torch would wait for threads that stayed in the parent, for ever."""
    script = (
        "import multiprocessing, sys\n"
        "from malmoi import Classifier\n"
        "classifier = Classifier.load(sys.argv[1], 'torch-fp32')\n"
        "texts = [f'꿈에서 {n}번 날았다' for n in range(300)]\n"
        "def scores(texts):\n"
        "    return [round(one.confidence, 4) for one in classifier.predict(texts)]\n"
        "here = scores(texts)\n"
        "with multiprocessing.get_context('fork').Pool(1) as pool:\n"
        "    print(pool.apply_async(scores, (texts,)).get(60) == here)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(classifier_directory)],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.stdout.strip() == "True", done.stderr[-2000:]


def test_what_is_no_text_in_a_stream_is_named_with_its_place(
    classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("malmoi.inference.inputs.TEXTS_IN_CHUNK", 2)
    stream: Any = ["가", "나", "다", None]
    with pytest.raises(InputError, match=r"place 3, .* found NoneType"):
        list(Classifier.load(classifier_directory).predict_iter(stream))


def test_a_number_in_a_table_is_the_text_of_its_digits(classifier_directory: Path) -> None:
    pandas = pytest.importorskip("pandas")
    classifier = Classifier.load(classifier_directory)
    found = classifier.predict_frame(pandas.DataFrame({"글": ["1234", 1234, 1234.0]}), "글")
    assert found["score"].nunique() == 1
    with pytest.raises(InputError, match="found list"):
        classifier.predict_frame(pandas.DataFrame({"글": [["꿈"]]}), "글")


def test_a_table_keeps_its_columns_and_its_rows_without_text(classifier_directory: Path) -> None:
    pandas = pytest.importorskip("pandas")
    classifier = Classifier.load(classifier_directory)
    frame = pandas.DataFrame(
        {"label": [1, 2, 3, 4], "글": ["꿈에서", None, float("nan"), "<br>"]}, index=[7, 8, 9, 10]
    )
    found = classifier.predict_frame(frame, "글")
    new = ["label (2)", "score", *(f"prob_{label}" for label in LABELS)]
    assert list(found.columns) == ["label", "글", *new] and list(found.index) == [7, 8, 9, 10]
    assert list(frame.columns) == ["label", "글"]
    assert found["label (2)"].tolist()[0] in LABELS
    assert found["score"].isna().tolist() == [False, True, True, True]
    with pytest.raises(InputError, match="expected a column 'text' in the table, found label, 글"):
        classifier.predict_frame(frame, "text")
    twice = pandas.DataFrame([["꿈", "글"]], columns=["글", "글"])
    with pytest.raises(InputError, match="expected one column '글' in the table, found 2"):
        classifier.predict_frame(twice, "글")
    assert list(classifier.predict_frame(frame[:0], "글").columns) == ["label", "글", *new]
    no_table: Any = ["꿈에서"]
    with pytest.raises(InputError, match="expected a table with a column '글', found list"):
        classifier.predict_frame(no_table, "글")


@pytest.mark.parametrize(
    "changes",
    [
        {"problem_type": "multi_label_classification", "thresholds": [0.5]},
        {"problem_type": "multi_label_classification", "thresholds": ["a", "b", "c"]},
    ],
)
def test_thresholds_that_fit_no_labels(
    changes: dict[str, Any], several_labels_model: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "copied"
    copied.mkdir()
    for file in several_labels_model.iterdir():
        (copied / file.name).write_bytes(file.read_bytes())
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(InputError, match="expected 3 numbers as thresholds"):
        Classifier.load(copied)


def test_an_unknown_engine(classifier_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"expected engine of auto, fast.* found 'tensorflow'"):
        Classifier.load(classifier_directory, "tensorflow")
    monkeypatch.setenv("MALMOI_ENGINE", "onnx")
    with pytest.raises(InputError, match=r"expected MALMOI_ENGINE of auto, fastest, .* 'onnx'"):
        Classifier.load(classifier_directory)


def test_a_damaged_export_is_made_again(
    classifier_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Classifier.load(classifier_directory, "onnx-fp32").predict(["꿈에서"])
    entry = entry_path(classifier_directory)
    network = entry / FILES["onnx-fp32"]
    good = shutil.copytree(entry, tmp_path / "good")
    made = 0

    def export(*given: Any) -> Any:
        """In no time, what an export makes."""
        nonlocal made
        made += 1
        shutil.copytree(good, entry, dirs_exist_ok=True)
        return find_exported(entry)

    damages: dict[str, Callable[[], Any]] = {
        "cut": lambda: os.truncate(network, 100),
        "noise": lambda: network.write_bytes(b"x" * network.stat().st_size),
        # As long as before, and a network still.
        "another network": lambda: network.write_bytes(
            network.read_bytes().replace(b"malmoi", b"malmol")
        ),
        "tokenizer": lambda: (entry / "tokenizer.json").write_text("{}"),
        "no description": lambda: (entry / "description.json").unlink(),
        "foreign description": lambda: (entry / "description.json").write_text("[]"),
    }
    for number, (name, damage) in enumerate(damages.items()):
        damage()
        again = Classifier.load(classifier_directory, "onnx-fp32")
        assert again.predict(["꿈에서"]) == before and made == number, name
        assert find_exported(entry) is not None, name
        # The first was made by the real one.
        monkeypatch.setattr(onnx_exporting, "export_classifier", export)


def test_a_full_disk_is_told_as_such_whatever_the_library_says(
    classifier_directory: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    error: Exception = RuntimeError("Wire format was corrupt")

    def fails(*given: object) -> None:
        raise error

    monkeypatch.setattr(cache, "CACHE", tmp_path)
    monkeypatch.setattr(onnx_exporting, "fits", lambda *_: False)
    monkeypatch.setattr(onnx_exporting, "_quantize", fails)
    with pytest.raises(InputError, match="ElectraForSequenceClassification"):
        Classifier.load(classifier_directory, "onnx-int8")  # of another fault it is the network's
    monkeypatch.setattr(onnx_exporting, "_export", fails)
    monkeypatch.setattr(
        onnx_exporting.shutil, "disk_usage", lambda path: SimpleNamespace(free=4096)
    )
    for error in (RuntimeError("corrupt"), OSError(errno.ENOSPC, "No space left")):
        with pytest.raises(OSError, match=rf"\[Errno {errno.ENOSPC}\].*{tmp_path / 'onnx'}"):
            Classifier.load(classifier_directory, "onnx-int8")
        assert not [path for path in tmp_path.rglob("*") if path.is_file()], error


def test_without_onnxruntime_it_says_how_to_install_it(
    classifier_directory: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Classifier.load(classifier_directory, "onnx-int8")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    line = "needs onnxruntime, which is not installed; pip install .*onnxruntime"
    with pytest.raises(InputError, match=line):  # an export is there, and stays
        Classifier.load(classifier_directory, "onnx-int8")
    assert find_exported(entry_path(classifier_directory)) is not None
    assert main(["export", str(classifier_directory), f"--output={tmp_path / 'out'}"]) == 2


def test_a_model_that_was_trained_again_is_another_export(
    classifier_directory: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "copied"
    copied.mkdir()
    for file in classifier_directory.iterdir():
        (copied / file.name).write_bytes(file.read_bytes())
    assert entry_path(copied) == entry_path(classifier_directory)
    (copied / "calibration.json").write_text('{"temperature": 2.0}')  # read beside it
    assert entry_path(copied) == entry_path(classifier_directory)
    kept = (copied / "config.json").read_text("utf-8")
    (copied / "config.json").write_text(json.dumps(json.loads(kept) | {"thresholds": [0.4] * 3}))
    assert entry_path(copied) != entry_path(classifier_directory)
    (copied / "config.json").write_text(kept, "utf-8")
    assert entry_path(copied) == entry_path(classifier_directory)
    weights = copied / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert entry_path(copied) != entry_path(classifier_directory)


class TestAuto:
    """The choice by measuring."""

    @pytest.fixture(autouse=True)
    def _samples(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("MALMOI_ENGINE", "auto")
        given = [text for text, _ in separable()] * 4, None
        monkeypatch.setattr(engine_comparison, "calibration_texts", lambda description: given)
        monkeypatch.setattr(cache, "CACHE", tmp_path / "cache")

    def test_it_is_measured_once_and_kept(
        self, classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said: list[str] = []
        first = Classifier.load(classifier_directory, say=said.append)
        assert [line.split()[0] for line in said] == ["exporting", "comparing"]
        kept = read_measurement(classifier_directory)
        assert kept["engine"] == first.engine and kept["texts"] == 252
        assert set(kept["measured"]) >= {"torch-fp32", "onnx-fp32", "onnx-int8"}
        monkeypatch.setattr(engine_choice, "_measured", None)
        assert Classifier.load(classifier_directory).engine == first.engine

    @pytest.fixture
    def exported(self, classifier_directory: Path, shared_cache: Path, _samples: None) -> None:
        """An export is there, and nothing was measured of it."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cache, "CACHE", shared_cache)
            Classifier.load(classifier_directory, "onnx-int8")
            kept = entry_path(classifier_directory)
        shutil.copytree(kept, entry_path(classifier_directory))
        assert read_measurement(classifier_directory) == {}

    @pytest.mark.usefixtures("exported")
    def test_an_engine_with_other_labels_is_not_taken(
        self, classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shares = iter([1.0] + [0.99] * 9)
        monkeypatch.setattr(engine_comparison, "agreement_of", lambda *_: next(shares))
        assert Classifier.load(classifier_directory).engine == "torch-fp32"

    @pytest.mark.usefixtures("exported")
    def test_an_engine_with_a_lower_score_is_not_taken(
        self, classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scores = iter([0.9] + [0.897] * 9)
        texts = [text for text, _ in separable()] * 4
        sample = texts, np.zeros(len(texts), np.int64)
        monkeypatch.setattr(engine_comparison, "calibration_texts", lambda description: sample)
        monkeypatch.setattr(engine_comparison, "_macro_f1", lambda *_: next(scores))
        assert Classifier.load(classifier_directory).engine == "torch-fp32"
        kept = read_measurement(classifier_directory)["measured"]
        assert kept["torch-fp32"]["macro_f1"] == 0.9

    def test_without_samples_it_is_torch(
        self, classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(engine_comparison, "calibration_texts", lambda description: None)
        assert Classifier.load(classifier_directory).engine.startswith("torch")
        assert not entry_path(classifier_directory).exists()


def test_the_sample_of_a_released_classifier_has_its_labels() -> None:
    config = {"labels": ["부정", "중립", "긍정"], "gives": "label", "pairs": False}
    rest = {"thresholds": [], "max_length": 8, "pad": 0, "token_types": True}
    own = engine_comparison.calibration_texts(ModelDescription(**config, **rest))
    assert own is not None and own[1] is not None and len(own[1]) == len(own[0])
    assert set(own[1].tolist()) == {0, 1, 2}
    other = engine_comparison.calibration_texts(
        ModelDescription(**{**config, "labels": ["a"]}, **rest)
    )
    assert other is not None and other[1] is None


def test_agreement_of_labels_and_of_values() -> None:
    label = ModelDescription(
        labels=["a", "b"],
        gives="label",
        pairs=False,
        thresholds=[],
        max_length=8,
        pad=0,
        token_types=True,
    )
    value = ModelDescription(**{**vars(label), "gives": "value"})
    ones = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [0.0, 3.0]], dtype=np.float32)
    others = ones.copy()
    others[0] = [0.0, 1.0]
    assert engine_comparison.agreement_of(ones, others, label) == 0.75
    assert engine_comparison.agreement_of(ones[:, :1], ones[:, :1] + 0.001, value) == 1.0
    assert engine_comparison.agreement_of(ones[:, :1], ones[:, :1] + 1, value) == 0.0
