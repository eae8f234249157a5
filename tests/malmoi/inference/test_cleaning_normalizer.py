"""The rules of cleaning as a tokenizer carries them, against `clean_text`."""

import pytest
from tokenizers import Tokenizer, models, normalizers

from malmoi import clean_text
from malmoi.inference.cleaning_normalizer import cleaning_rules, with_cleaning
from malmoi.text.cleaning.cleaner import clean_batch

RULES = normalizers.Sequence(cleaning_rules())
# No tokenizer of ours tells an emoji by it.
_DRESS = str.maketrans("", "", "\ufe0f\u200d")


def test_ordinary_texts_come_out_as_clean_text_has_them() -> None:
    for text in (
        "재밌어요ㅋㅋㅋㅋㅋㅋ!!!!! ㅠㅠㅠ...",
        "  여러\t줄\n\n글  ",
        "가\u0001나\u200b다\ufeff",
        "ᄒ\u1161\u11ab글 é",
        "http://example.com/a?b=1 좋아요 www.naver.com에서",
        "1&lt;2 &amp;amp; &quot;네&quot;&nbsp;",
        "<b>굵게</b><br/>다음 <a href='x'>줄</a> <BOB> <24>",
        "OOO 같은 ○○씨 ●●○○○",
        "★★★★★ ★★★★★★★★★★★★ ♥♥♥♥♥♥♥♥♥♥♥♥♥♥",
        "100000원 III AAA급 goooood 1.000.000",
        "👍🏻👍🏻👍🏻👍🏻 ❤️❤️❤️❤️ 😂😂😂😂",
        "",
    ):
        assert RULES.normalize_str(text) == clean_text(text).translate(_DRESS)


def test_of_the_sample_comments_all_do(comments: list[str]) -> None:
    # Typed as people type: drawn out, in two lines.
    spoilt = [line.replace("ㅋㅋ", "ㅋㅋㅋㅋㅋ").replace(". ", "...\n") for line in comments]
    expected = [text.translate(_DRESS) for text in clean_batch(spoilt).texts]
    assert [RULES.normalize_str(text) for text in spoilt] == expected


def test_a_clean_text_is_left_as_it_is(comments: list[str]) -> None:
    clean = [text.translate(_DRESS) for text in clean_batch(list(comments)).texts]
    assert [RULES.normalize_str(text) for text in clean] == clean


def test_a_tokenizer_that_carries_them_knows_the_places_in_the_text_as_written() -> None:
    words = models.WordLevel({"[UNK]": 0, "좋아요ㅋㅋ": 1}, unk_token="[UNK]")
    tokenizer = Tokenizer.from_str(with_cleaning(Tokenizer(words).to_str()))
    text = "  <br>좋아요ㅋㅋㅋㅋㅋ "
    encoding = tokenizer.encode(text)
    assert encoding.ids == [1]
    start, end = encoding.offsets[0]
    assert text[start:end].startswith("좋아요") and end <= len(text.rstrip())


@pytest.mark.timeout(60)
def test_long_texts_take_linear_time() -> None:
    for text in ("ㅋ" * 300_000, "<" * 300_000, "&amp;" * 60_000, "가 " * 150_000):
        RULES.normalize_str(text)
