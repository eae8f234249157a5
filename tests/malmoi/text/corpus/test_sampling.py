"""`malmoi sample`: an even draw, and texts before and after cleaning."""

import os
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from malmoi.__main__ import main
from malmoi.commands.sample import compare
from malmoi.text.corpus.sample import draw
from malmoi.text.record import Record


def test_every_item_is_equally_likely() -> None:
    drawn = Counter(item for seed in range(3_000) for item in draw(range(20), 5, seed))
    # 750 draws of each expected, standard deviation 23.7: five of them on either side.
    assert all(750 - 119 < drawn[item] < 750 + 119 for item in range(20))


def test_a_draw_is_repeatable_in_order_and_at_most_what_is_there() -> None:
    assert draw(range(1000), 10, 1) == draw(range(1000), 10, 1) == sorted(draw(range(1000), 10, 1))
    assert draw(range(1000), 10, 1) != draw(range(1000), 10, 2)
    assert draw(range(3), 10, 0) == [0, 1, 2]
    assert draw([], 10, 0) == []


def test_memory_is_that_of_the_sample() -> None:
    tracemalloc.start()
    draw(("가" * 10_000 + str(n) for n in range(2_000)), 10, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000  # all of it would be 40 MB


def test_texts_before_and_after() -> None:
    texts = ["재밌다ㅋㅋㅋㅋㅋ 정말로요", "변할 것이 하나도 없는 문장", "짧다", ""]
    records = [Record(id=str(n), text=text) for n, text in enumerate(texts)]
    compared = list(compare(records))
    assert [(c.after, c.reason, c.changed) for c in compared] == [
        ("재밌다ㅋㅋ 정말로요", None, True),
        ("변할 것이 하나도 없는 문장", None, False),
        ("짧다", "too-short", True),
        ("", "empty", True),
    ]


def test_long_and_broken_texts_are_shown_on_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    syllables = "".join(chr(ord("가") + number) for number in range(800))
    path.write_text('{"text": "긴\\n글 \\ud83d ' + syllables + '"}\n', encoding="utf-8")
    assert main(["sample", str(path)]) == 0
    before, after, _ = capsys.readouterr().out.split("\n")
    assert before.startswith("before  긴\\n글  가각")
    assert before.endswith("… (505 more characters)")
    assert after.startswith("after   긴 글 가각")


def test_output_in_an_encoding_without_emoji(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("변할 것이 하나도 없는 문장 👍\n", encoding="utf-8")
    command = [sys.executable, "-m", "malmoi", "sample", str(path)]
    environment = os.environ | {"PYTHONIOENCODING": "cp949"}
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert "before  변할 것이 하나도 없는 문장 \\U0001f44d" in done.stdout.decode("cp949")
