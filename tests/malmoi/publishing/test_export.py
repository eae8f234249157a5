"""`malmoi export`: a folder that a stranger uses in four ways, each with the labels of ours."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import pipeline

from malmoi import Classifier, InputError, cache
from malmoi.__main__ import main
from malmoi.inference import engine_choice
from malmoi.inference.onnx_exports import measurements_path, write_measurement
from malmoi.inference.prediction import ValuePrediction
from malmoi.publishing.folder import export_folder
from tests.malmoi.finetune.conftest import LABELS, separable
from tests.malmoi.publishing.conftest import RELEASED, ROOT

FILES = {
    "README.md",
    "config.json",
    "index.html",
    "model.safetensors",
    "onnx/malmoi.json",
    "onnx/model.onnx",
    "onnx/model_quantized.onnx",
    "tokenizer.json",
    "tokenizer_config.json",
}
TEXTS = [
    "재밌어요ㅋㅋㅋㅋㅋㅋㅋ 추천!!!!!",
    "  돈이 아깝다...<br>최악 ",
    "그냥저냥\t먹을만해요 http://example.com/1",
    "쀍 핰 넼 ★★★★★",
    "[SEP] 는 글자다",
    "",
]
Exported = Callable[[Path], Path]


def probabilities(folder: Path, engine: str, texts: list[str]) -> np.ndarray:
    found = Classifier.load(folder, engine).predict(texts)
    return np.array([list(one.probabilities.values()) for one in found])


def by_pipeline(folder: Path, texts: list[str], labels: list[str]) -> np.ndarray:
    rows = pipeline("text-classification", model=str(folder))(texts, truncation=True, top_k=None)
    return np.array(
        [[{one["label"]: one["score"] for one in row}[n] for n in labels] for row in rows]
    )


def by_onnx(folder: Path, text: str, pair: str | None = None) -> np.ndarray:
    """Logits, as somebody has them who knows nothing of Malmoi."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    network = onnxruntime.InferenceSession(str(folder / "onnx" / "model.onnx"))
    encoded = tokenizer.encode(text, pair)
    values = {
        "input_ids": encoded.ids,
        "attention_mask": encoded.attention_mask,
        "token_type_ids": encoded.type_ids,
    }
    assert [one.name for one in network.get_outputs()] == ["logits"]
    inputs = {one.name: np.array([values[one.name]]) for one in network.get_inputs()}
    return np.asarray(network.run(None, inputs)[0][0])


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum())


def test_the_released_classifier_in_a_stock_pipeline_and_in_onnxruntime_alone(
    released_folder: Path,
) -> None:
    found = {str(path.relative_to(released_folder)) for path in released_folder.rglob("*.*")}
    assert found == FILES
    labels = Classifier.load(RELEASED).labels
    expected = probabilities(RELEASED, "torch-fp32", TEXTS)
    assert np.abs(by_pipeline(released_folder, TEXTS, labels) - expected).max() < 1e-4
    # Without it the drawn-out ones have other probabilities.
    assert np.abs(by_pipeline(RELEASED, TEXTS, labels) - expected).max() > 0.01
    alone = np.array([softmax(by_onnx(released_folder, text)) for text in TEXTS])
    assert np.abs(alone - expected).max() < 1e-4
    for path in released_folder.rglob("*"):  # nothing of the machine is in it
        if path.suffix in (".json", ".md", ".html"):
            assert str(RELEASED.parent) not in path.read_text("utf-8"), path.name


def test_a_long_text_is_cut_by_others_and_read_in_windows_by_malmoi(released_folder: Path) -> None:
    long = "재미있다 " * 60 + "돈이 아깝다 " * 100
    cut = softmax(by_onnx(released_folder, long))
    labels = Classifier.load(RELEASED).labels
    assert np.abs(by_pipeline(released_folder, [long], labels)[0] - cut).max() < 1e-4
    expected = probabilities(RELEASED, "torch-fp32", [long])[0]
    found = probabilities(released_folder, "onnx-fp32", [long])[0]
    assert np.abs(found - expected).max() < 1e-4
    assert np.abs(cut - expected).max() > 0.01


def test_with_malmoi_which_exports_nothing_again(
    exported: Exported, classifier_directory: Path
) -> None:
    engines = ("torch-fp32", "onnx-fp32", "onnx-int8")
    folder = exported(classifier_directory)
    found = {engine: probabilities(folder, engine, TEXTS) for engine in engines}
    assert not cache.CACHE.exists()
    for engine in engines:
        expected = probabilities(classifier_directory, engine, TEXTS)
        assert np.abs(found[engine] - expected).max() < 1e-5, engine


def test_networks_that_are_not_of_the_model_are_not_taken(
    exported: Exported, classifier_directory: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(exported(classifier_directory), folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["id2label"] = {"0": "가", "1": "나", "2": "다"}
    config["label2id"] = {"가": 0, "나": 1, "다": 2}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert Classifier.load(folder, "onnx-fp32").labels == ["가", "나", "다"]
    assert cache.CACHE.exists()
    for broken in ("", "[]", '{"version": 1}'):
        (folder / "onnx" / "malmoi.json").write_text(broken)
        assert Classifier.load(folder, "onnx-fp32").labels == ["가", "나", "다"]


@pytest.fixture
def damaged(exported: Exported, classifier_directory: Path, tmp_path: Path) -> Path:
    """An exported folder whose networks have the right size and nothing in them."""
    folder = tmp_path / "damaged"
    shutil.copytree(exported(classifier_directory), folder)
    for path in (folder / "onnx").glob("*.onnx"):
        path.write_bytes(bytes(path.stat().st_size))
    return folder


def test_networks_that_cannot_be_read_are_made_again(
    damaged: Path, classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MALMOI_ENGINE")
    monkeypatch.setenv("MALMOI_HOME", str(ROOT))
    expected = Classifier.load(classifier_directory, "torch-fp32").predict(["내일 회의"])[0].label
    # The second time it is found, and for auto measured.
    for engine in ("onnx-int8", "onnx-int8", "auto", "auto"):
        assert Classifier.load(damaged, engine).predict(["내일 회의"])[0].label == expected


def test_without_torch_damaged_networks_are_made_again_or_one_line(
    damaged: Path, classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MALMOI_ENGINE")
    expected = Classifier.load(classifier_directory, "torch-fp32").predict(["내일 회의"])[0].label
    monkeypatch.setitem(sys.modules, "torch", None)
    for engine in ("onnx-fp32", "onnx-int8", "auto"):
        assert Classifier.load(damaged, engine).predict(["내일 회의"])[0].label == expected
    # Of a model that only torch exports.
    monkeypatch.setattr(engine_choice, "can_export", lambda folder: False)
    for engine in ("onnx-fp32", "onnx-int8", "auto"):
        with pytest.raises(InputError, match=r"^expected an ONNX .*damaged.*\.onnx, found"):
            Classifier.load(damaged, engine)


def test_without_torch_auto_takes_what_was_measured_of_the_folder(
    exported: Exported, classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MALMOI_ENGINE")
    folder = exported(classifier_directory)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("malmoi.inference.onnx_exports._MADE_BY", ("onnxruntime",))
    for engine in ("onnx-int8", "onnx-fp32"):
        write_measurement(folder, {"engine": engine, "model": str(folder), "measured": {}})
        assert Classifier.load(folder).engine == engine
    monkeypatch.setattr(engine_choice, "can_export", lambda folder: False)
    # Nor is it taken for a damaged export, where the networks beside the model are gone.
    (folder / "onnx" / "model.onnx").rename(folder / "onnx" / "other.onnx")
    try:
        with pytest.raises(InputError, match="no ONNX export of"):
            Classifier.load(folder)
    finally:
        (folder / "onnx" / "other.onnx").rename(folder / "onnx" / "model.onnx")
    assert measurements_path(folder).is_dir()


def test_what_was_measured_is_kept_apart_from_exports(
    exported: Exported, classifier_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MALMOI_ENGINE")
    monkeypatch.setenv("MALMOI_HOME", str(ROOT))
    said: list[str] = []
    folder = exported(classifier_directory)
    first = Classifier.load(folder, "fastest", say=said.append)
    assert said == ["comparing the engines on this machine, once"]
    assert Classifier.load(folder, say=said.append).engine == first.engine
    assert len(said) == 1
    (place,) = (cache.CACHE / "onnx").iterdir()
    assert place.name.endswith("-measured")


def test_several_labels(exported: Exported, several_labels_model: Path) -> None:
    folder = exported(several_labels_model)
    expected = Classifier.load(several_labels_model, "torch-fp32").predict(["내일 병원 예약"])[0]
    assert (
        Classifier.load(folder, "onnx-fp32").predict(["내일 병원 예약"])[0].label == expected.label
    )
    found = by_pipeline(folder, ["내일 병원 예약"], LABELS)[0]
    assert np.abs(found - list(expected.probabilities.values())).max() < 1e-4
    thresholds = json.loads((folder / "config.json").read_text("utf-8"))["thresholds"]
    chosen = [n for n, p, least in zip(LABELS, found, thresholds, strict=True) if p >= least]
    assert ", ".join(chosen) == expected.label


def test_pairs_and_values(exported: Exported, pairs_model: Path, values_model: Path) -> None:
    first, second = "내일 병원ㅋㅋㅋㅋ", "친구와 싸워서  속상했다"
    expected = Classifier.load(pairs_model, "torch-fp32").predict([first], [second])[0]
    folder = exported(pairs_model)
    found = softmax(by_onnx(folder, first, second))
    assert np.abs(found - list(expected.probabilities.values())).max() < 1e-4
    answer = pipeline("text-classification", model=str(folder))(
        {"text": first, "text_pair": second}
    )
    assert answer["label"] == expected.label
    assert (
        Classifier.load(folder, "onnx-fp32").predict([first], [second])[0].label == answer["label"]
    )

    value = Classifier.load(values_model, "torch-fp32").predict([first], [second])[0]
    assert isinstance(value, ValuePrediction)
    folder = exported(values_model)
    assert float(by_onnx(folder, first, second)[0]) == pytest.approx(value.value, abs=1e-4)
    answer = pipeline("text-classification", model=str(folder))(
        {"text": first, "text_pair": second}
    )
    assert answer["score"] == pytest.approx(value.value, abs=1e-4)


def test_a_linear_part_stays_and_only_malmoi_adds_it(linear_model: Path, tmp_path: Path) -> None:
    source, folder = tmp_path / "memos", tmp_path / "exported"
    shutil.copytree(linear_model, source)
    scores = {"encoder": {"mean_f1": 0.51234}, "both": {"mean_f1": 0.98765}}
    (source / "report.json").write_text(json.dumps({"parts": scores}))
    said: list[str] = []
    export_folder(source, folder, say=said.append)
    assert len([line for line in said if "linear part" in line]) == 1
    texts = [text for text, _ in separable()]
    expected = probabilities(source, "torch-fp32", texts)
    for engine in ("torch-fp32", "onnx-fp32"):
        assert np.abs(probabilities(folder, engine, texts) - expected).max() < 1e-5
    assert Classifier.load(folder, "onnx-fp32").parts == ["encoder", "characters"]
    # Everybody else has the encoder, as it was trained.
    (source / "linear.json").unlink()
    (source / "calibration.json").unlink()
    alone = probabilities(source, "torch-fp32", texts)
    assert np.abs(by_pipeline(folder, texts, LABELS) - alone).max() < 1e-4
    assert np.abs(alone - expected).max() > 0.1
    card = (folder / "README.md").read_text("utf-8")
    use = card.partition("## Use")[2].partition("## Evaluation")[0]
    assert "linear part" in use
    limits = card.partition("## Limits of this folder")[2]
    assert "`linear.json`" in limits and "0.5123" in limits and "0.9877" in limits


def test_an_encoder_without_a_say_is_refused(
    linear_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "memos"
    shutil.copytree(linear_model, source)
    described = json.loads((source / "linear.json").read_text("utf-8"))
    (source / "linear.json").write_text(json.dumps(described | {"encoder_weight": 0.0}))
    alone = tmp_path / "alone"
    alone.mkdir()
    for name in ("linear.json", "linear.safetensors"):
        shutil.copy(source / name, alone)
    for place, found in ((source, "found 0: other programs"), (alone, "found a linear classifier")):
        assert main(["export", str(place), f"--output={tmp_path / 'out'}"]) == 2
        error = capsys.readouterr().err
        assert found in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_temperature_that_cannot_be_worked_in_is_kept(
    classifier_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder = tmp_path / "memos", tmp_path / "exported"
    shutil.copytree(classifier_directory, source)
    (source / "calibration.json").write_text('{"temperature": 3.0}')
    monkeypatch.setattr("malmoi.publishing.folder._LAST_LAYERS", ("another",))
    export_folder(source, folder)
    found = probabilities(folder, "onnx-fp32", TEXTS)
    assert np.abs(found - probabilities(source, "torch-fp32", TEXTS)).max() < 1e-5
    assert "calibration.json" in (folder / "README.md").read_text("utf-8")


def test_a_temperature_is_worked_into_weights_and_bias(
    classifier_directory: Path, tmp_path: Path
) -> None:
    source, folder = tmp_path / "memos", tmp_path / "exported"
    shutil.copytree(classifier_directory, source)
    (source / "calibration.json").write_text('{"temperature": 3.0}')
    weights = load_file(source / "model.safetensors")
    weights["classifier.out_proj.bias"] = torch.tensor([3.0, 0.0, -3.0])
    save_file(weights, source / "model.safetensors", {"format": "pt"})
    export_folder(source, folder)
    expected = probabilities(source, "torch-fp32", TEXTS)
    assert np.abs(probabilities(folder, "onnx-fp32", TEXTS) - expected).max() < 1e-5
    assert np.abs(by_pipeline(folder, TEXTS, LABELS) - expected).max() < 1e-4


def test_the_card_says_what_it_is_and_its_examples_run(
    exported: Exported,
    released_folder: Path,
    pairs_model: Path,
    several_labels_model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for folder in (released_folder, exported(pairs_model), exported(several_labels_model)):
        card = ModelCard.load(folder / "README.md")
        assert card.data.language == "ko" and card.data.pipeline_tag == "text-classification"
        assert card.data.to_dict()["labels"] == Classifier.load(folder).labels
        text = (folder / "README.md").read_text("utf-8")
        assert "$" not in text
        # Pipeline gives probabilities only.
        several = Classifier.load(folder).gives == "labels"
        assert ("counts from its number" in text) is several
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        assert len(blocks) == 3
        for block in blocks:
            with monkeypatch.context() as patched:
                patched.chdir(folder)
                exec(block, {"__name__": "__main__"})
            assert capsys.readouterr().out.strip()
    released = (released_folder / "README.md").read_text("utf-8")
    report = json.loads((RELEASED / "report.json").read_text("utf-8"))
    assert ModelCard.load(released_folder / "README.md").data.license == "apache-2.0"
    assert (
        f"{report['pooled']['macro_f1']:.4f}" in released
        and f"{report['plan']['data']['texts']:,} texts" in released
    )
    assert "NSMC's official `ratings_test.txt`" in " ".join(released.split())
    assert "](../" not in released


def test_a_place_that_is_taken_is_refused(
    classifier_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "mine.txt").write_text("mine")
    for place in (taken, taken / "mine.txt"):
        assert main(["export", str(classifier_directory), f"--output={place}"]) == 2
        assert "expected a new or an empty folder for --output" in capsys.readouterr().err
    assert [path.name for path in taken.iterdir()] == ["mine.txt"]
    (tmp_path / "empty").mkdir()
    assert main(["export", str(classifier_directory), f"--output={tmp_path / 'empty'}"]) == 0
    assert (tmp_path / "empty" / "onnx" / "model.onnx").is_file()
    assert "under which licence" in capsys.readouterr().out


def test_a_fault_leaves_nothing_behind(
    classifier_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from malmoi.publishing import folder

    def full(*given: object) -> None:
        raise OSError(28, "No space left on device", "x")

    monkeypatch.setattr(folder, "write_networks", full)
    assert main(["export", str(classifier_directory), f"--output={tmp_path / 'new' / 'out'}"]) == 2
    assert not (tmp_path / "new").exists()


def test_what_is_no_classifier_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(tmp_path / "none"), f"--output={tmp_path / 'out'}"]) == 2
    assert "no model directory" in capsys.readouterr().err
    encoder = ROOT / "checkpoints" / "malmoi-small"
    assert main(["export", str(encoder), f"--output={tmp_path / 'out'}"]) == 2
    assert "is not a finished classifier" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
