"""MeCab-ko behind one module: golden analyses, repeats, long texts, what it could not read."""

import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor

from malmoi.text.words import STOP_WORDS, find_keywords, morphemes


def spelt(text: str) -> str:
    return " ".join(f"{form}/{tag}" for form, tag in morphemes(text))


def test_morphemes_with_tags() -> None:
    for text, expected in (
        ("", ""),
        ("   ", ""),
        ("학교에서 ", "학교/NNG 에서/JKB"),
        # A contraction is what it consists of; a compound is a word.
        ("갔다", "가/VV 았/EP 다/EC"),
        ("영화관이", "영화관/NNG 이/JKS"),
        ("들어요", "들/VV 어요/EF"),
        ("ㅋㅋㅋㅋㅋㅋ", "ㅋㅋ/UNKNOWN"),
        ("a+b/c", "a/SL +/SY b/SL //SC c/SL"),
    ):
        assert spelt(text) == expected


def test_decomposed_hangul_is_analysed_as_composed() -> None:
    assert spelt(unicodedata.normalize("NFD", "학교에서 갔다")) == spelt("학교에서 갔다")


def test_what_ends_a_text_of_c_or_is_no_utf8_hides_nothing() -> None:
    for text in ("학교\0영화", "학교\ud800영화", "학교\u2028영화"):
        assert {"학교", "영화"} <= {form for form, _ in morphemes(text)}, text


def test_long_repeats_and_long_texts_take_no_time() -> None:
    began = time.process_time()
    assert len(morphemes("ㅋ" * 1_000_000)) == 1
    assert len(morphemes("보통" * 50_000)) >= 50_000
    assert time.process_time() - began < 20


def test_threads_do_not_disturb_each_other() -> None:
    texts = [f"{number}번째 영화를 봤는데 재미있었다" for number in range(400)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(spelt, texts)) == list(map(spelt, texts))


def test_keywords_are_content_words_counted_once_a_text() -> None:
    texts = ["영화 영화 영화가 재밌었다", "영화를 봤는데 연기가 좋았다", "이 영화 좋아요", "좋네요"]
    found = find_keywords(texts, count=3)
    assert [(k.word, k.word_class, k.texts) for k in found.keywords] == [
        ("영화", "noun", 3),
        ("좋다", "adjective", 3),
        ("연기", "noun", 1),
    ]
    assert found.texts == 4
    assert "보다" in STOP_WORDS  # 봤는데
