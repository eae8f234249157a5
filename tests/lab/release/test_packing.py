"""Packing for release: half the size, stock, and nothing about the machine that trained."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer, pipeline

from lab.release.packing import keep_strongest, pack_classifier, pack_encoder
from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier
from malmoi.inference.linear.linear_part import load_linear
from malmoi.model_folders import find_classifiers, find_encoder

TEXTS = ["꿈에서 하늘을 날았다", "내일 세 시에 회의", "ㅋㅋㅋ"]


@pytest.fixture
def finished_run(encoder: Path, tmp_path: Path) -> Path:
    """A run of pretrain/run.py as far as packing looks at it."""
    run = tmp_path / "runs" / "pretrain" / "reviews"
    shutil.copytree(encoder, run / "discriminator")
    shutil.copytree(encoder, run / "generator")
    plan = {"corpus": {"path": str(tmp_path / "corpus"), "tokenizer": None}}
    record = {"status": "finished", "plan": plan}
    (run / "run.json").write_text(json.dumps(record), encoding="utf-8")
    rows = (json.dumps({"step": step, "loss": 1 / step}) for step in range(20, 20_001, 20))
    (run / "metrics.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (run / ".lock").touch()
    return run


@pytest.fixture
def classifier_run(classifier_directory: Path, tmp_path: Path) -> Path:
    """A run of finetune/kfold.py as far as packing looks at it."""
    run = tmp_path / "runs" / "finetune" / "memos"
    shutil.copytree(classifier_directory, run / "model")
    (run / "model" / "calibration.json").write_text('{"temperature": 2.0}', encoding="utf-8")
    report = {"mean_f1": 0.9, "data": {"path": str(tmp_path / "memos.csv")}}
    (run / "report.json").write_text(json.dumps(report), encoding="utf-8")
    return run


def test_a_packed_encoder_is_a_stock_one_of_half_the_size(
    finished_run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "checkpoints" / "malmoi"
    pack_encoder(finished_run, folder)
    before = (finished_run / "discriminator" / "model.safetensors").stat().st_size
    assert (folder / "model.safetensors").stat().st_size < 0.6 * before
    stored = load_file(folder / "model.safetensors")
    assert {value.dtype for value in stored.values()} == {torch.float16}
    model = AutoModel.from_pretrained(folder)
    assert model.dtype == torch.float32
    given = AutoTokenizer.from_pretrained(folder)(TEXTS, padding=True, return_tensors="pt")
    original = AutoModel.from_pretrained(finished_run / "discriminator")
    with torch.no_grad():
        difference = (model(**given)[0] - original(**given)[0]).abs().max()
    assert 0 < difference < 0.05
    assert find_encoder(tmp_path) == finished_run / "discriminator"
    shutil.rmtree(tmp_path / "runs")
    assert find_encoder(tmp_path) == folder


def test_a_packed_record_has_the_losses_that_a_check_compares_and_some_of_the_others(
    finished_run: Path, tmp_path: Path
) -> None:
    pack_encoder(finished_run, tmp_path / "encoder")
    text = (tmp_path / "encoder" / "metrics.jsonl").read_text(encoding="utf-8")
    steps = [json.loads(line)["step"] for line in text.splitlines()]
    assert steps[:25] == list(range(20, 501, 20)) and steps[-1] == 20_000
    assert 100 < len(steps) < 150 and '{"step":60,"loss":0.0166667}' in text


def test_a_packed_run_names_no_folder_of_the_machine(
    finished_run: Path, classifier_run: Path, tmp_path: Path
) -> None:
    pack_encoder(finished_run, tmp_path / "encoder")
    pack_classifier(classifier_run, tmp_path / "classifier")
    for folder in ("encoder", "classifier"):
        for file in (tmp_path / folder).rglob("*.json"):
            assert str(tmp_path) not in file.read_text(encoding="utf-8")
    record = json.loads((tmp_path / "encoder" / "run.json").read_text())
    assert record["plan"]["corpus"]["path"] == "corpus"
    assert not (tmp_path / "encoder" / ".lock").exists()


def test_a_packed_classifier_predicts_as_before(classifier_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints" / "malmoi-memos"
    pack_classifier(classifier_run, folder)
    before = Classifier.load(classifier_run / "model").predict(TEXTS)
    after = Classifier.load(folder).predict(TEXTS)
    for old, new in zip(before, after, strict=True):
        assert new.label == old.label
        assert new.confidence == pytest.approx(old.confidence, abs=0.02)
    assert find_classifiers(tmp_path)[-1] == folder
    stock = pipeline("text-classification", str(folder))
    assert [found["label"] for found in stock(TEXTS)] == [old.label for old in before]


def test_what_is_there_is_not_overwritten_and_half_a_run_not_packed(
    finished_run: Path, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    with pytest.raises(InputError, match="new folder"):
        pack_encoder(finished_run, taken)
    (finished_run / "run.json").write_text('{"status": "running"}', encoding="utf-8")
    with pytest.raises(InputError, match="finished run"):
        pack_encoder(finished_run, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_strongest_ngrams_travel_and_labels_stay(tmp_path: Path) -> None:
    released = Path(__file__).parents[3] / "checkpoints" / "malmoi-small-memos"
    folder = Path(shutil.copytree(released, tmp_path / "memos"))
    keep_strongest(folder, most=5_000)
    part = load_linear(folder)
    assert part is not None and [len(one.vocabulary) for one in part.ngrams] == [5_000, 5_000]
    assert (folder / "linear.json").read_bytes() == (released / "linear.json").read_bytes()
    texts = ["꿈에서 하늘을 날았다", "내일 오후 3시 치과 예약"]
    found = [Classifier.load(place).predict(texts) for place in (released, folder)]
    assert [[one.label for one in labels] for labels in found] == [["꿈", "일정"]] * 2
