"""The fast path gives what the reference gives, on anything; and what holds of both."""

import re
import unicodedata
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malmoi.errors import InputError
from malmoi.text.cleaning.cleaner import CleaningSettings, clean_batch, clean_text, reason_to_drop
from malmoi.text.cleaning.personal_data import KINDS
from malmoi.text.reading.records import iter_records
from malmoi.text.reading.sources import find_sources

SHARED = Path(__file__).parents[5] / "shared" / "data"

# Every rule has its raw material here; they meet each other and themselves, and are cut anywhere.
PIECES = (
    *"가나ㅋㅎㅠ아하 안녕 영화.!?~…·♥★大李乃\t\n\u3000\u00a0\u2028-_/:@&<>[];#",
    *("ㅋㅋㅋ", "하하하하", "됬", "핳", "뿛릿", "OOO", "○○", "O", "o", "Ｏ", "OO OOO", "......"),
    *("010", "-1234", "-5678", "공일공", "일이삼사", "오육칠팔", "공1공", "02)", "123-4567", "+82"),
    *("1588-1234", "900101-1234567", "4111 1111 1111 1111", "계좌 ", "국민", "110-123-456789"),
    *(
        "12가3456",
        "서울31바",
        "1234",
        "2019.01.01",
        "10000000",
        "０１０",
        "３４",
        "％",
        "a.b",
        "@naver",
    ),
    *(".com", "골뱅이", "골", "뱅", "http://", "https:/", "/", "www.", "wwww", "ww.", "naver.com"),
    *("&amp;", "&lt;", "&gt;", "br", "<br>", "</p>", "<b", "&#39;", "&#x200b;", "&#79;", "&", ";"),
    *("\u200b", "\u200d", "\ufe0f", "\ufeff", "\u3164", "\ufffd", "\x00", "\x07", "\x85", "\x1f"),
    *(
        "\ud83d",
        "\udc4d",
        "👍",
        "🏻",
        "😂",
        "❤\ufe0f",
        "👩",
        "🇰",
        "🇷",
        "\U000e0067",
        "🏴",
        "①",
        "㎏",
    ),
    *("\u1112", "\u1161", "\u11ab", "e\u0301", "\u0300", "か\u3099", "\u212b", "\uf9e1", "ﾡ", "ｱﾞ"),
    *("ì•ˆë…•", "¾È³ç", "í•˜", "Ã©", "â€™", "é", "×", "÷", "蹂닿린", "뱶臾", "\x80", "\x94"),
    *("★★★", "☆☆", "●●", "AAA", "II", "I", "VI", "X", "www", "급", "+++", "$$$", "ⅠⅠⅠ", "二"),
    *("<script>", "</script>", "<style a>", "<!--", "-->", "82-10", "(0)", ",1234", "뒷자리 "),
    *("[전화]", "[계좌]", "[", "전화]", "KcBERT", "Good", "dddd"),
)
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
    st.text(st.characters(), max_size=20),  # lone surrogates included
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=2)), max_size=8).map("".join),
)
SETTINGS = st.builds(
    CleaningSettings,
    min_characters=st.integers(1, 6),
    max_characters=st.integers(6, 40),
    max_repeats=st.integers(0, 3),
    min_distinct=st.sampled_from([0.0, 0.3, 0.8]),
    hanja=st.sampled_from(["keep", "space", "drop-text"]),
    alphabet=st.sampled_from(["any", "kcbert"]),
    need_hangul=st.booleans(),
    fix_mojibake=st.booleans(),
    remove_urls=st.booleans(),
    remove_html=st.booleans(),
    remove_portal_masks=st.booleans(),
    personal_data=st.sampled_from([KINDS, (), ("phone",), ("email", "plate")]),
)
DEFAULTS = CleaningSettings()


# Numbers in columns, which only the white space between them tells from one number.
has_columns = re.compile(r"\d\W*\s\W*\d").search


def assert_same(texts: list[str], rules: CleaningSettings) -> None:
    batch = clean_batch(texts, rules)
    expected = [clean_text(text, rules) for text in texts]
    assert batch.texts == expected
    assert batch.reasons == [
        reason_to_drop(text, cleaned, rules) for text, cleaned in zip(texts, expected, strict=True)
    ]


@given(st.lists(TEXTS, max_size=6), SETTINGS)
@settings(max_examples=400)
def test_batch_equals_reference(texts: list[str], rules: CleaningSettings) -> None:
    assert_same(texts, rules)


@given(TEXTS)
@settings(max_examples=600)
def test_cleaning_is_stable_normal_and_encodable(text: str) -> None:
    cleaned = clean_text(text)
    if not has_columns(cleaned):
        assert clean_text(cleaned) == cleaned
    assert unicodedata.is_normalized("NFC", cleaned)
    cleaned.encode("utf-8")
    reason_to_drop(text, cleaned)


@given(TEXTS, SETTINGS)
@settings(max_examples=400)
def test_cleaning_is_stable_with_any_settings(text: str, rules: CleaningSettings) -> None:
    cleaned = clean_text(text, rules)
    if not has_columns(cleaned):
        assert clean_text(cleaned, rules) == cleaned


WIDE = str.maketrans("0123456789", "０１２３４５６７８９")


@given(
    st.sampled_from(["", "연락 ", "번호는", "☎", "(", "제 번호 : "]),
    st.text("0123456789", min_size=8, max_size=8),
    st.sampled_from(["", "-", " ", ".", " - ", "–", "－", "·", "/", ")", "~"]),
    st.booleans(),
    st.sampled_from(["", "로 전화", " 입니다", ")", "!!", "ㅋㅋㅋ"]),
)
@settings(max_examples=200)
def test_no_digit_of_a_number_is_left(
    before: str, digits: str, gap: str, is_wide: bool, after: str
) -> None:
    number = f"010{gap}{digits[:4]}{gap}{digits[4:]}"
    cleaned = clean_text(before + (number.translate(WIDE) if is_wide else number) + after)
    assert "[전화]" in cleaned
    assert not any(c.isdigit() for c in cleaned)


@pytest.mark.parametrize(
    "texts",
    [[], [""], ["", ""], [" "], ["\n"], ["가  ", "  나", " 다 \n "], ["\n\n가\n\n", "", "나\n"]],
)
def test_edges_of_texts(texts: list[str]) -> None:
    assert_same(texts, DEFAULTS)
    assert_same(texts, CleaningSettings(min_characters=1, max_repeats=1))


def test_every_character_between_two() -> None:
    # All of the BMP that is not Hangul or hanja, and a sample of the rest: the reference takes 20 s
    # for everything.
    codes = (*range(0x3400), *range(0xD7A4, 0x10000), *range(0x3400, 0x110000, 37))
    assert_same([f"가{chr(code)}나" for code in codes], DEFAULTS)


def test_samples_equal_reference(comments: list[str]) -> None:
    for rules in (DEFAULTS, CleaningSettings(alphabet="kcbert", hanja="space", max_repeats=1)):
        assert_same(comments, rules)


@pytest.mark.skipif(not SHARED.is_dir(), reason="no ../shared/data")
def test_real_texts_equal_reference() -> None:
    for folder in ("nsmc", "comments", "kote", "korean_hate_speech", "chatbot", "petitions"):
        for source in find_sources(SHARED / folder):
            if "README" in source.name or "LICENSE" in source.name:
                continue
            path = SHARED / folder / source.name
            column = "content" if "petitions" in path.name else None
            try:
                # The reference needs a minute for all of them.
                records = islice(iter_records(path, text_column=column), 10_000)
                texts = [record.text for record in records]
            except InputError:  # files without a header: each line is a text
                texts = path.read_text(encoding="utf-8").split("\n")
            assert_same(texts[:: max(1, len(texts) // 500)], DEFAULTS)
