"""Long texts in windows: all of a text is read, by every engine, and in bounded memory."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

from malmoi.inference.batching import TokenizedTexts, tokenize_all
from malmoi.inference.classifier import Classifier
from malmoi.inference.stock import load_stock
from malmoi.inference.torch_engine import DeviceTokens, predict_probabilities
from malmoi.inference.windows import MOST_WINDOWS, Frame, in_windows, window_starts
from malmoi.transformers_models import load_tokenizer
from tests.malmoi.finetune.conftest import LABELS, make_tokenizer, separable

# What the classifier of the fixtures reads at once, [CLS] and [SEP] included.
LENGTH = 64
ROOM = LENGTH - 2
# Largest difference of a probability from the stock model's in fp32; the weights are large.
TOLERANCE = {"torch-fp32": 1e-4, "torch-bf16": 0.05, "onnx-fp32": 1e-4, "onnx-int8": 0.15}


def long_texts() -> list[str]:
    """Texts of 1 to some 20 windows, whose parts say different things."""
    words = " ".join(text for text, _ in separable()).split()
    return [" ".join((words * 9)[start : start + 40 * start + 3]) for start in range(0, 30, 3)]


def rows_of(tokens: TokenizedTexts) -> list[list[int]]:
    return [
        tokens.flat[start:end].tolist()
        for start, end in zip(tokens.offsets, tokens.offsets[1:], strict=False)
    ]


def test_windows_lie_evenly_over_a_text_and_share_a_quarter() -> None:
    for room in (1, 2, 3, 5, 62, 126):
        for beyond in (1, 2, 31, 32, 33, 95, 400):
            tokens = room + beyond
            starts = window_starts(tokens, room)
            steps = np.diff(starts)
            assert starts[0] == 0 and steps.min() >= 1, room
            assert steps.max() - steps.min() <= 1, room
            assert room - steps.max() >= room // 4
            if len(starts) < MOST_WINDOWS:
                assert starts[-1] + room == tokens
                # No more windows than that takes.
                assert (len(starts) - 2) * (room - room // 4) < beyond


def test_a_text_that_fits_is_one_row_and_costs_no_copy() -> None:
    flat, counts = np.arange(10, dtype=np.int32), np.array([4, 6])
    rows = in_windows(flat, counts, 6, Frame(1, 1))
    assert rows.flat is flat and rows.counts is counts
    assert rows.windows is None and not rows.was_cut.any()


def test_rows_are_those_of_a_plain_loop() -> None:
    tokenizer = make_tokenizer()
    given = ["", *long_texts(), "꿈"]
    tokens = tokenize_all(tokenizer, given, LENGTH)
    expected, counts = [], []
    for text in given:
        ids = tokenizer(text, add_special_tokens=False).input_ids
        starts = window_starts(len(ids), ROOM)
        counts.append(len(starts))
        expected += [
            [tokenizer.cls_token_id, *ids[start : start + ROOM], tokenizer.sep_token_id]
            for start in starts
        ]
    assert max(counts) > 10
    assert rows_of(tokens) == expected
    assert tokens.windows is not None and np.diff(tokens.windows).tolist() == counts
    places = np.array([5, 0, 3, 5])
    rows, text = tokens.rows_of(places)
    assert text.tolist() == [n for n, place in enumerate(places) for _ in range(counts[place])]
    first = np.concatenate([[0], np.cumsum(counts)])
    assert rows.tolist() == [
        row for place in places for row in range(first[place], first[place + 1])
    ]


def test_the_first_window_is_the_text_cut_as_the_tokenizer_cuts_it() -> None:
    for side in ("right", "left"):
        tokenizer = make_tokenizer()
        tokenizer.truncation_side = side
        given = ["", *long_texts(), "꿈"]
        beginnings = tokenize_all(tokenizer, given, LENGTH).beginnings()
        stock = tokenizer(given, truncation=True, max_length=LENGTH).input_ids
        assert rows_of(beginnings) == stock, side
        longer = [len(ids) > LENGTH for ids in tokenizer(given, verbose=False).input_ids]
        assert beginnings.was_cut.tolist() == longer, side


@pytest.mark.parametrize("engine", TOLERANCE)
def test_every_engine_averages_the_logits_of_the_windows(
    engine: str, classifier_directory: Path
) -> None:
    tokenizer = load_tokenizer(classifier_directory)
    model = AutoModelForSequenceClassification.from_pretrained(classifier_directory).eval()
    expected = []
    for text in long_texts():
        ids = tokenizer(text, add_special_tokens=False).input_ids
        windows = [
            [tokenizer.cls_token_id, *ids[start : start + ROOM], tokenizer.sep_token_id]
            for start in window_starts(len(ids), ROOM)
        ]
        with torch.inference_mode():
            logits = torch.stack([model(torch.tensor([row])).logits[0] for row in windows])
        expected.append(torch.softmax(logits.mean(dim=0), -1).tolist())
    classifier = Classifier.load(classifier_directory, engine)
    found = classifier.predict(long_texts())
    probabilities = [list(one.probabilities.values()) for one in found]
    assert np.abs(np.array(probabilities) - np.array(expected)).max() < TOLERANCE[engine]
    assert not any(one.cut for one in found)


def test_k_fold_predicts_as_the_classifier_does(classifier_directory: Path) -> None:
    stock = load_stock(classifier_directory)
    tokens = tokenize_all(stock.tokenizer, long_texts(), LENGTH)
    device = torch.device("cpu")
    places = np.array([7, 0, 9, 3])
    found = predict_probabilities(
        stock.model, DeviceTokens(tokens, device), places, "single", device
    )
    classifier = Classifier.load(classifier_directory, "torch-fp32")
    expected = classifier.predict([long_texts()[place] for place in places])
    for row, one in zip(found, expected, strict=True):
        # On some processors k-fold computes in bf16.
        assert dict(zip(LABELS, row, strict=True)) == pytest.approx(one.probabilities, abs=0.03)


def test_of_a_million_words_the_first_windows_are_read_and_that_is_said_once(
    classifier_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    classifier = Classifier.load(classifier_directory, "onnx-fp32")
    capsys.readouterr()
    begin = "꿈에서 하늘을 날았다 " * 2_000
    huge = begin + "내일 병원 예약 " * 110_000
    assert len(huge) > 1_000_000
    tracemalloc.start()
    cut, short, again = classifier.predict([huge, "꿈", huge + "가"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert cut.cut and again.cut and not short.cut
    assert cut.probabilities == pytest.approx(again.probabilities, abs=1e-5)
    # Python's own; what Rust takes while it cuts is not counted.
    assert peak < 300 << 20
    said = capsys.readouterr().err
    assert said.count(f"a text is longer than {MOST_WINDOWS} windows of {LENGTH} tokens") == 1


def test_pairs_are_cut_as_before(pairs_model: Path) -> None:
    classifier = Classifier.load(pairs_model, "torch-fp32")
    first, second = "내일 병원", long_texts()[-1]
    (found,) = classifier.predict([first], [second])
    stock = load_stock(pairs_model)
    inputs = stock.tokenizer(
        first,
        second,
        truncation=True,
        max_length=LENGTH,
        return_token_type_ids=True,
        return_tensors="pt",
    )
    with torch.inference_mode():
        expected = torch.softmax(stock.model(**inputs).logits[0], -1).tolist()
    assert found.cut
    assert list(found.probabilities.values()) == pytest.approx(expected, abs=1e-4)
