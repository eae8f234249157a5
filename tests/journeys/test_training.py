"""Journeys of labelled files into a model and its report, and of texts into an encoder."""

import json
from html.parser import HTMLParser
from pathlib import Path

import onnxruntime
import pandas as pd
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

from malmoi.labels.label_names import normal_label
from malmoi.text.cleaning.cleaner import clean_text, reason_to_drop
from tests.journeys.files import DirtyFile, Written
from tests.journeys.laws import Done, journey, must_be_read, render, run, table_of
from tests.journeys.strategies import SENTENCES, files, journeys

TABLES = ("csv", "tsv", "jsonl", "json", "parquet", "xlsx")
# Every label has texts enough for two folds, whatever else is drawn.
ENOUGH = tuple(
    (text + end, label)
    for end in ("", " 그래서 적어 둡니다")
    for label, texts in SENTENCES.items()
    for text in texts
)


def _with_enough(file: DirtyFile) -> DirtyFile:
    return DirtyFile(**(vars(file) | {"rows": ENOUGH + file.rows}))


def _kfold(written: Written, file: DirtyFile, *flags: object) -> Done:
    settings = ["--data", written.path, "--text-column", written.text_column]
    settings += ["--label-column", written.label_column, "--folds", 2]
    if {"empty labels", "second table", "short rows"} & set(file.dirt):
        settings += ["--set", "data.skip_unlabelled=true"]
    return run("kfold", *settings, *flags)


@journeys(25, file=files(forms=TABLES))
def test_a_quick_model_is_measured_exported_and_used(file: DirtyFile) -> None:
    file = _with_enough(file)
    with journey() as home:
        written = render(file, home)
        done = _kfold(written, file, "--quick", "--output", "학습")
        if not must_be_read(written, done):
            return
        _check_run(written, Path("학습"))
        again = _kfold(written, file, "--quick", "--output", "또")
        assert again.code == 0
        assert Path("또/predictions.csv").read_bytes() == Path("학습/predictions.csv").read_bytes()
        assert run("compare", "학습", "또").code == 0
        predicted = run("predict", written.path, "--model", "학습/model", "--output", "답.jsonl")
        assert predicted.code == 0, predicted
        assert len(table_of(Path("답.jsonl"))) == len(written.in_place)
        text = next(text for text in written.texts if clean_text(text))
        assert run("explain", "--model", "학습/model", "--", text).code == 0


@journeys(20, [{"file": DirtyFile(rows=ENOUGH[:1], form="csv")}], file=files(forms=TABLES))
def test_an_encoder_is_fine_tuned_and_exported(file: DirtyFile, encoder: Path) -> None:
    file = _with_enough(file)
    with journey() as home:
        written = render(file, home)
        flags = ["--model", encoder, "--epochs", 1, "--jobs", 1, "--output", "학습"]
        # Of an encoder that the linear model outweighs nothing is to be exported.
        flags += [] if file.seed else ["--set", "linear.enabled=false"]
        done = _kfold(written, file, *flags)
        if not must_be_read(written, done):
            return
        _check_run(written, Path("학습"))
        _, info = AutoModelForSequenceClassification.from_pretrained(
            "학습/model", output_loading_info=True
        )
        assert not info["missing_keys"] and not info["unexpected_keys"]
        if file.seed:
            return  # to export takes longer than all the rest
        assert run("export", "학습/model", "--output", "낸").code == 0
        for path in ("낸/onnx/model.onnx", "낸/onnx/model_quantized.onnx"):
            onnxruntime.InferenceSession(path)
        predicted = run("predict", written.path, "--model", "낸", "--output", "답.jsonl")
        assert predicted.code == 0, predicted
        assert len(table_of(Path("답.jsonl"))) == len(written.in_place)


def _check_run(written: Written, folder: Path) -> None:
    """Every file that a run promises is there, opens, and tells of every row."""
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    predictions = pd.read_csv(folder / "predictions.csv", keep_default_na=False)
    assert report["data"]["texts"] == len(predictions)
    accounted = report["data"]["texts"] + sum(report["data"]["left_out"].values())
    assert accounted == len(written.rows)
    known = {normal_label(label) for label in written.labels}
    assert set(predictions["label"].astype(str)) <= known
    assert set(report["data"]["per_label"]) <= known
    page = _Page()
    page.feed((folder / "report.html").read_text(encoding="utf-8"))
    assert page.open == [], page.open
    assert "script" not in page.seen


class _Page(HTMLParser):
    """Whether every element that is opened is closed, in order."""

    _VOID = frozenset({"meta", "link", "br", "img", "hr", "input", "col"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag not in self._VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, (tag, self.open)


@journeys(5, file=files(least=8, most=20))
def test_an_encoder_is_pretrained_on_any_file(file: DirtyFile) -> None:
    with journey() as home:
        written = render(file, home)
        flags = ["--preset", "tiny", "--max-steps", 2, "--tokens-per-batch", 256]
        done = run("pretrain", "--corpus", written.path, *flags, "--output", "학습")
        if _too_little(written):
            return
        if not must_be_read(written, done):
            return
        json.loads(Path("학습/run.json").read_text(encoding="utf-8"))
        metrics = Path("학습/metrics.jsonl").read_text(encoding="utf-8").splitlines()
        assert json.loads(metrics[-1])["step"] == 2
        AutoModel.from_pretrained("학습/discriminator")
        AutoTokenizer.from_pretrained("학습/discriminator")


def _too_little(written: Written) -> bool:
    cleaned = {text: clean_text(text) for text in written.texts}
    kept = {clean for text, clean in cleaned.items() if reason_to_drop(text, clean) is None}
    return len(kept) < 3


@journeys(10, file=files(least=8, most=20))
def test_a_tokenizer_is_trained_on_any_file(file: DirtyFile) -> None:
    with journey() as home:
        written = render(file, home)
        flags = ["--output", "조각", "--vocab-size", 1024, "--min-frequency", 1]
        done = run("tokenizer", "train", "--corpus", written.path, *flags)
        if _too_little(written):
            return
        if not must_be_read(written, done):
            return
        tokenizer = AutoTokenizer.from_pretrained("조각")
        assert tokenizer.unk_token_id not in tokenizer("배송")["input_ids"]
