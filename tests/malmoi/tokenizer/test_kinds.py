"""What holds for every kind of tokenizer: Korean edge cases, round trips, ids of sentencepiece."""

import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from malmoi.text.reading.records import iter_records
from malmoi.tokenizer.alphabet import COMMON_EMOJI
from malmoi.tokenizer.kinds import ModelKind
from malmoi.tokenizer.sampling import mark_morphemes
from malmoi.tokenizer.training import train_tokenizer
from malmoi.transformers_models import SPECIAL_TOKENS, tokenizer_hash
from tests.malmoi.tokenizer.conftest import KINDS, Pair

SHARED = Path(__file__).parents[4] / "shared" / "data"

HARD_TEXTS = [
    "",
    "   ",
    "진짜 재밌어요ㅋㅋㅋㅋㅋㅋ",
    "ㅋ",
    "ㅠㅠ ㅇㅈ ㄹㅇ ㅏ ᄏᄏ",
    unicodedata.normalize("NFD", "한국 영화 최고 뷁"),
    "최고👍🏻👍🏻 😀😀 👨‍👩‍👧 🇰🇷 ❤️ 🦖",
    "漢字와 한글 龘",
    "2024년 3월 15일 1,000원 10000000",
    "café CAFÉ Café",
    "뷁쉟꿻 핰 넼ㅋㅋ",
    "\u200b안녕\ufeff\x00\x07",
    "탭\t과\n줄\r\n바꿈\u3000전각\xa0공백",
    "ㅡ▁ㅡ ▁ __",
    "a" * 300,
    "가" * 10_000,
    "ㅋ" * 500,
    "[MASK] 라는 글자 <0xEA> [unused0]",
    "돼요/되요... 안/않!?",
    "ภาษาไทย가나 кот",
]


def test_a_saved_tokenizer_gives_the_same_ids(pair: Pair) -> None:
    for text in HARD_TEXTS:
        trained, loaded = pair.trained.tokenizer, pair.loaded
        assert loaded(text).input_ids == trained(text).input_ids
        assert loaded(text, "둘째 글").token_type_ids == trained(text, "둘째 글").token_type_ids


GOLDEN = [
    ("진짜 재밌어요ㅋㅋㅋㅋ", "wordpiece", "진짜 재밌 ##어요 ##ㅋㅋㅋㅋ"),
    ("ㅠㅠ ㅇㅈ ᄏ", "wordpiece", "ㅠㅠ ㅇ ##ㅈ ᄏ"),
    ("쉟 핰", "wordpiece", "ᄉ ##ᅰ ##ᆶ ᄒ ##ᅡ ##ᆿ"),
    ("漢字와", "wordpiece", "漢 字 와"),
    ("😀😀👍🏻🇰🇷", "wordpiece", "😀 😀 👍 🏻 🇰 🇷"),
    ("2024년 10,000원", "wordpiece", "20 ##2 ##4 ##년 10 , 00 ##0 ##원"),
    ("café PC방", "wordpiece", "caf ##é PC ##방"),
    ("탭\t줄\n끝", "wordpiece", "ᄐ ##ᅢᆸ 줄 끝"),
    ("ㅡ▁ㅡ", "wordpiece", "ㅡ _ ㅡ"),
    ("진짜 재밌어요ㅋㅋㅋㅋ", "unigram", "▁진짜 ▁재밌 어요 ㅋㅋㅋㅋ"),
    ("ㅠㅠ ㅇㅈ ᄏ", "unigram", "▁ㅠㅠ ▁ ㅇ ㅈ ▁ ᄏ"),
    ("쉟 핰", "unigram", "▁ ᄉ ᅰ ᆶ ▁ ᄒ ᅡ ᆿ"),
    ("漢字와", "unigram", "▁ 漢 字 와"),
    ("😀😀👍🏻🇰🇷", "unigram", "▁ 😀 😀 👍 🏻 🇰 🇷"),
    ("2024년 10,000원", "unigram", "▁20 24 년 ▁10 , 0 00 원"),
    ("café PC방", "unigram", "▁ c a f é ▁P C 방"),
    ("탭\t줄\n끝", "unigram", "▁ ᄐ ᅢᆸ ▁줄 ▁끝"),
    ("ㅡ▁ㅡ", "unigram", "▁ ㅡ _ ㅡ"),
    ("진짜 재밌어요ㅋㅋㅋㅋ", "bpe", "▁진짜 ▁재밌 어요 ㅋㅋㅋㅋ"),
    ("ㅠㅠ ㅇㅈ ᄏ", "bpe", "▁ㅠㅠ ▁ㅇ ㅈ ▁ᄏ"),
    ("쉟 핰", "bpe", "▁ᄉ ᅰ ᆶ ▁ᄒ ᅡ ᆿ"),
    ("漢字와", "bpe", "▁漢字 와"),
    ("😀😀👍🏻🇰🇷", "bpe", "▁😀 😀 👍 🏻 🇰 🇷"),
    ("2024년 10,000원", "bpe", "▁20 24 년 ▁10 , 00 0 원"),
    ("café PC방", "bpe", "▁c afé ▁PC 방"),
    ("탭\t줄\n끝", "bpe", "▁ᄐ ᅢᆸ ▁줄 ▁끝"),
    ("ㅡ▁ㅡ", "bpe", "▁ ㅡ _ ㅡ"),
]


def test_pieces(pair_of: Callable[..., Pair]) -> None:
    for text, kind, pieces in GOLDEN:
        assert " ".join(pair_of(kind).loaded.tokenize(text)) == pieces


def test_lone_jamo_digits_latin_are_never_unknown(pair: Pair) -> None:
    for text in ("ㅋㅋㅋㅋ", "ㅠㅠ", "ㅇㅈ", "asdf", "1234567890", "ㄱㅏㄴ", "~!"):
        assert pair.loaded.unk_token_id not in pair.loaded(text).input_ids


def test_no_hangul_syllable_is_unknown_and_decoding_gives_it_back(pair: Pair) -> None:
    syllables = [chr(code) for code in range(0xAC00, 0xD7A4)]
    for start in range(0, len(syllables), 50):
        text = " ".join(syllables[start : start + 50])
        ids = pair.loaded(text).input_ids
        assert pair.loaded.unk_token_id not in ids
        decoded = pair.loaded.decode(ids, skip_special_tokens=True)
        assert unicodedata.normalize("NFC", decoded) == text


def test_a_rare_syllable_is_cut_into_its_jamo(pair: Pair) -> None:
    pieces = [piece.removeprefix("##").strip("▁") for piece in pair.loaded.tokenize("쉟")]
    assert "".join(pieces) == unicodedata.normalize("NFD", "쉟")


def test_decomposed_hangul_gives_the_ids_of_composed(pair: Pair) -> None:
    text = "각 영화관에서 환불을 거절했습니다 뷁"
    decomposed = unicodedata.normalize("NFD", text)
    assert pair.loaded(decomposed).input_ids == pair.loaded(text).input_ids


def test_white_space_of_any_kind_and_invisible_characters_do_not_matter(pair: Pair) -> None:
    plain = pair.loaded("안녕 하세요 여러분").input_ids
    assert pair.loaded("\u200b안녕\t하세요\r\n\u3000 여러분\ufeff\x00 ").input_ids == plain


def test_empty_text_is_the_frame_alone(pair: Pair) -> None:
    for text in ("", "  \n ", "\u200b"):
        assert pair.loaded.convert_ids_to_tokens(pair.loaded(text).input_ids) == ["[CLS]", "[SEP]"]


def test_a_word_of_10000_characters_is_cut_and_nothing_lost(pair: Pair) -> None:
    text = "가나다라마바사아자차" * 1_000
    ids = pair.loaded(text).input_ids
    assert pair.loaded.unk_token_id not in ids
    assert "".join(pair.loaded.decode(ids, skip_special_tokens=True).split()) == text


def test_case_and_accents_are_kept(pair: Pair) -> None:
    assert pair.loaded("PC").input_ids != pair.loaded("pc").input_ids
    assert pair.loaded("café").input_ids != pair.loaded("cafe").input_ids
    assert pair.loaded.decode(pair.loaded("café PC").input_ids, True) == "café PC"


def test_emoji_have_one_form_with_and_without_selector_and_joiner(pair: Pair) -> None:
    assert pair.loaded("❤️").input_ids == pair.loaded("❤").input_ids
    assert pair.loaded("👍🏻").input_ids != pair.loaded("👍").input_ids
    assert pair.loaded("🇰🇷").input_ids != pair.loaded("🇯🇵").input_ids


def test_common_emoji_are_told_apart_whatever_the_corpus_holds(pair: Pair) -> None:
    """The sample comments have hardly any."""
    ids = [tuple(pair.loaded(emoji, add_special_tokens=False).input_ids) for emoji in COMMON_EMOJI]
    assert len(set(ids)) == len(COMMON_EMOJI)
    entries = pair.loaded.get_vocab()  # the kinds of sentencepiece would spell them in bytes else
    assert not [emoji for emoji in COMMON_EMOJI if emoji not in entries]
    assert pair.loaded("🤷‍♀️").input_ids != pair.loaded("🤷‍♂️").input_ids
    assert pair.loaded.unk_token_id not in pair.loaded("최고예요😂😂 ❤️‍🔥").input_ids


def test_emoji_leave_room_for_letters_in_a_tiny_vocabulary(comments: list[str]) -> None:
    for kind in KINDS:
        tokenizer = train_tokenizer(comments, model=kind, vocab_size=1_024).tokenizer
        assert len(tokenizer) == 1_024
        assert tokenizer.unk_token_id not in tokenizer("이 영화 최고예요ㅋㅋ").input_ids
        if kind != "wordpiece":  # which needs two entries for each letter, so that emoji go first
            assert len(tokenizer(COMMON_EMOJI[:64], add_special_tokens=False).input_ids) <= 66


def test_sentencepiece_kinds_know_every_character(pair: Pair) -> None:
    text = "🦖 龘 ภาษา кот"
    ids = pair.loaded(text).input_ids
    if pair.kind == "wordpiece":
        assert pair.loaded.unk_token_id in ids
    else:
        assert pair.loaded.decode(ids, skip_special_tokens=True) == text


def test_special_tokens_come_first_and_frame_pairs(pair: Pair) -> None:
    assert pair.loaded.convert_ids_to_tokens(range(5)) == list(SPECIAL_TOKENS)
    encoded = pair.loaded("가", "나")
    tokens = [token.strip("▁") for token in pair.loaded.convert_ids_to_tokens(encoded.input_ids)]
    assert [token for token in tokens if token] == ["[CLS]", "가", "[SEP]", "나", "[SEP]"]
    second = tokens.index("[SEP]") + 1
    assert encoded.token_type_ids == [0] * second + [1] * (len(tokens) - second)
    assert pair.loaded.mask_token_id == 4


def test_vocabulary_is_a_multiple_of_128_and_padding_is_unreachable(
    kind: ModelKind, comments: list[str]
) -> None:
    tokenizer = train_tokenizer(comments[:5], model=kind, vocab_size=1_030).tokenizer
    vocabulary = tokenizer.get_vocab()
    unused = [token for token in vocabulary if token.startswith("[unused")]
    assert len(vocabulary) % 128 == 0
    assert unused
    ids = tokenizer(" ".join(unused) + "".join(unused)).input_ids
    assert not {vocabulary[token] for token in unused} & set(ids)


def test_two_trainings_on_one_corpus_give_one_tokenizer(
    kind: ModelKind, comments: list[str]
) -> None:
    hashes = {
        tokenizer_hash(train_tokenizer(comments, model=kind, vocab_size=2_048).tokenizer)
        for _ in range(2)
    }
    assert len(hashes) == 1


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> ModelKind:
    kind: ModelKind = request.param
    return kind


def test_morphemes_cut_the_training_text_and_encoding_needs_no_analyser(
    kind: ModelKind, pair_of: Callable[..., Pair], comments: list[str]
) -> None:
    pair = pair_of(kind, morphemes=True)
    assert not [token for token in pair.loaded.get_vocab() if "\ue000" in token]
    marked, failed = mark_morphemes(comments)
    assert failed == 0
    inside = {word.replace("\ue000", "|") for text in marked for word in text.split()}
    assert "영화|를" in inside or len(inside) > 1_000
    plain = sum(len(ids) for ids in pair_of(kind).loaded(comments).input_ids)
    cut = sum(len(ids) for ids in pair.loaded(comments).input_ids)
    assert cut > plain  # pieces that cross morphemes are gone


def differing(pair: Pair, texts: list[str]) -> list[str]:
    original = sentencepiece.SentencePieceProcessor(model_proto=pair.trained.sentencepiece_model)
    backend = pair.loaded.backend_tokenizer
    return [
        text
        for text in texts
        if original.encode(unicodedata.normalize("NFC", text).replace("\0", ""))
        != backend.encode(text, add_special_tokens=False).ids
    ]


@pytest.fixture(params=("unigram", "bpe"))
def converted(request: pytest.FixtureRequest, pair_of: Callable[..., Pair]) -> Pair:
    return pair_of(request.param)


def test_converted_tokenizers_give_the_ids_of_sentencepiece(
    converted: Pair, comments: list[str]
) -> None:
    hard = [text for text in HARD_TEXTS if "[MASK]" not in text]
    assert differing(converted, [*hard, *comments]) == []


# Deleted signs that make one grapheme with what follows, which `tokenizers` then deletes as well
# (the known difference in `build_normalizer`, as that of combining marks).
JOINED_TO_NEXT = (
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)


@settings(max_examples=150)
@given(
    text=st.text(
        st.one_of(
            st.sampled_from("가각뷁ㅋㅠ. !▁\t\u200b👍🏻e\u1100\u1161"),
            st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3),
            st.characters(
                exclude_categories=("Cs", "Cn", "Mn", "Mc", "Me"), exclude_characters=JOINED_TO_NEXT
            ),
        )
    )
)
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_any_text_has_the_ids_of_sentencepiece(
    kind: ModelKind, pair_of: Callable[..., Pair], text: str
) -> None:
    # In a text, as in BERT, [MASK] is the mask to `tokenizers` and six characters to sentencepiece.
    assume(not any(token in text for token in SPECIAL_TOKENS))
    assert differing(pair_of(kind), [text]) == []


def test_ids_of_sentencepiece_on_real_texts(converted: Pair) -> None:
    """As many texts as fit a second."""
    path = SHARED / "comments" / "korean_hate_speech_unlabeled_5.txt"
    if not path.is_file():
        pytest.skip("no ../shared/data beside the project")
    texts = [record.text for record in iter_records(path)][::10]
    assert len(texts) > 3_000
    assert differing(converted, texts) == []
