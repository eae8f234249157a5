"""Learning from few labels: what is drawn, what is scored, what is kept."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lab.benchmarks.quality.few_labels import LEAST_OF_LABEL, FewLabelsSettings, _draw, _split, main
from lab.benchmarks.quality.tasks import TASKS


def test_a_draw_has_enough_of_each_label_and_is_another_for_each_seed() -> None:
    targets = np.repeat([0, 1, 2], [900, 90, 10])
    draws = [_draw(targets, 60, draw) for draw in range(20)]
    for places in draws:
        assert len(set(places.tolist())) == 60
        assert min(Counter(targets[places].tolist()).values()) >= LEAST_OF_LABEL
    assert np.array_equal(draws[0], _draw(targets, 60, 0))
    assert len({tuple(places) for places in draws}) == 20
    # Beyond the least, at random: about as many of the commonest as there are.
    commonest = np.mean([(targets[places] == 0).mean() for places in draws])
    assert 0.6 < commonest < 0.9


def test_no_text_is_both_drawn_and_scored(tmp_path: Path) -> None:
    learn, test = _split(TASKS["memos"], tmp_path)
    assert not set(learn.texts) & set(test.texts)
    assert len(learn.texts) > len(test.texts) > 1_000


def test_rows_are_kept_and_not_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "few.json"
    settings = FewLabelsSettings(
        tasks="memos", labels="60,600", draws=2, ways="svm", output=output, data=tmp_path
    )
    main(settings)
    rows = json.loads(output.read_text(encoding="utf-8"))["runs"]
    assert [(row["labels"], row["draw"]) for row in rows] == [(60, 0), (60, 1), (600, 0), (600, 1)]
    few, many = (
        np.mean([row["macro_f1"] for row in rows if row["labels"] == number])
        for number in (60, 600)
    )
    assert 20 < few < many < 95  # chance is 20
    assert output.with_suffix(".png").stat().st_size > 5_000
    before = output.read_bytes()
    main(settings)
    assert output.read_bytes() == before
    assert "±" in capsys.readouterr().out
