"""Kiwi behind one module: golden analyses, repeats, long texts, failures that are counted."""

import os
import subprocess
import sys
import unicodedata
from typing import Any

import pytest

from malmoi.text import morphemes
from malmoi.text.morphemes import (
    AnalyserError,
    analyse,
    analyser_version,
    correct_spacing,
    morpheme_boundaries,
    split_sentences,
)


def cut(text: str) -> str:
    places = morpheme_boundaries(text)
    return "|".join(text[i:j] for i, j in zip([0, *places], [*places, len(text)], strict=True))


def test_morphemes_with_tags_and_offsets() -> None:
    for text, expected in (
        ("", []),
        ("   ", []),
        ("ㅋㅋ", [("ㅋㅋ", "SW", 0, 2)]),
        ("학교에서", [("학교", "NNG", 0, 2), ("에서", "JKB", 2, 4)]),
        # A contraction: both morphemes stand on one syllable.
        ("갔다", [("가", "VV", 0, 1), ("었", "EP", 0, 1), ("다", "EF", 1, 2)]),
        ("漢字와", [("漢字", "SH", 0, 2), ("와", "JKB", 2, 3)]),
        ("최고👍🏻", [("최고", "NNG", 0, 2), ("👍🏻", "W_EMOJI", 2, 4)]),
    ):
        assert [(m.form, m.tag, m.start, m.end) for m in analyse(text)] == expected


def test_cuts_inside_eojeols() -> None:
    for text, expected in (
        ("학교에서 갔다", "학교|에서 갔|다"),
        ("아버지가 방에 들어가신다", "아버지|가 방|에 들어가|신다"),
        ("재밌어요ㅋㅋㅋㅋ 영화", "재밌|어요|ㅋㅋㅋㅋ 영화"),
        ("가족👨‍👩‍👧사진", "가족|👨‍👩‍👧|사진"),
        ("한 글 자", "한 글 자"),
    ):
        assert cut(text) == expected


def test_decomposed_hangul_is_analysed_as_composed() -> None:
    text = "학교에서 갔다"
    assert analyse(unicodedata.normalize("NFD", text)) == analyse(text)


@pytest.mark.parametrize("unit", ["ㅋ", "보통", "ㅋㅎ", "a", "!", "하하하하"])
def test_long_repeats_are_folded_before_kiwi_and_keep_their_place(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kiwipiepy#158: a segmentation fault at 40,000 repeats; 200,000 "a" take it a minute."""
    seen: list[str] = []
    kiwi = morphemes._kiwi(os.getpid())

    class Watched:
        def tokenize(self, text: str) -> Any:
            seen.append(text)
            return kiwi.tokenize(text)

    monkeypatch.setattr(morphemes, "_kiwi", lambda process: Watched())
    text = f"영화 {unit * 2_000} 최고"
    found = analyse(text)
    assert max(map(len, seen)) < 60
    assert (found[0].form, found[0].start) == ("영화", 0)
    assert (found[-1].form, text[found[-1].start : found[-1].end]) == ("최고", "최고")
    covered = {place for m in found for place in range(m.start, m.end)}
    assert covered == {place for place, character in enumerate(text) if character != " "}


def test_a_long_text_is_analysed_in_pieces_with_its_own_offsets() -> None:
    text = "오늘은 날씨가 좋다. " * 1_000
    found = analyse(text)
    assert len(found) == 1_000 * len(analyse("오늘은 날씨가 좋다. "))
    assert all(text[m.start : m.end] == "날씨" for m in found if m.form == "날씨")
    unbroken = "가나다라마바사아자차" * 1_500
    assert analyse(unbroken)[-1].end == len(unbroken)


def test_a_text_that_makes_the_analyser_fail_is_an_error() -> None:
    with pytest.raises(AnalyserError, match="Kiwi failed on"):
        analyse("가\ud800나")  # half a surrogate pair: Kiwi's answer cannot be decoded


def test_spacing_that_would_change_letters_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless:
        def space(self, text: str) -> str:
            return text + "."

    monkeypatch.setattr(morphemes, "_kiwi", lambda process: Careless())
    with pytest.raises(AnalyserError, match="more than spaces"):
        correct_spacing("재밌어요")


def test_sentences_that_lose_a_part_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless:
        def split_into_sents(self, text: str, **options: Any) -> list[Any]:
            return kiwi.split_into_sents(text, **options)[1:]

    kiwi = morphemes._kiwi(os.getpid())
    monkeypatch.setattr(morphemes, "_kiwi", lambda process: Careless())
    with pytest.raises(AnalyserError, match="lost a part"):
        split_sentences("재밌었다. 또 보고싶다.")


def test_one_analyser_a_process_and_its_version_on_record() -> None:
    assert morphemes._kiwi(os.getpid()) is morphemes._kiwi(os.getpid())
    assert analyser_version().startswith("kiwipiepy 0.")


def test_a_forked_process_makes_its_own_and_ends_well() -> None:
    """Freeing the parent's analyser would abort it: the threads of that are not there."""
    script = (
        "import os, sys\n"
        "from malmoi.text.morphemes import analyse\n"
        "analyse('학교에서 갔다')\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    sys.exit(len(analyse('학교에서 왔다')))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert int(done.stdout) == len(analyse("학교에서 왔다"))
