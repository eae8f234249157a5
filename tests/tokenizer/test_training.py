"""Korean through the tokenizer: training, ids, round trips."""

import json
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from corpora.errors import InputError
from tokenizer.training import SPECIAL_TOKENS, load_tokenizer, tokenizer_hash, train_tokenizer

ROOT = Path(__file__).parents[2]
COMMENTS = ROOT / "corpora" / "comments"


@pytest.fixture(scope="module")
def trained(comments: list[str]) -> PreTrainedTokenizerFast:
    return train_tokenizer([*comments, "漢字 漢字 😀 😀 👍🏻 👍🏻 café café"], vocab_size=4_096)


@pytest.fixture(scope="module")
def loaded(
    trained: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory
) -> PreTrainedTokenizerFast:
    folder = tmp_path_factory.mktemp("tokenizer")
    trained.save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


HARD_TEXTS = [
    "",
    "   ",
    "진짜 재밌어요ㅋㅋㅋㅋㅋㅋ",
    "ㅋ",
    "ㅠㅠ ㅇㅈ ㄹㅇ ㅏ",
    unicodedata.normalize("NFD", "한국 영화 최고"),
    "최고👍🏻👍🏻 😀😀",
    "漢字와 한글",
    "2024년 3월 15일 1,000원 10000000",
    "café CAFÉ Café",
    "뷁쉟꿻",
    "\u200b안녕\ufeff",
    "a" * 300,
    "ㅋ" * 500,
    "[MASK] 라는 글자",
    "돼요/되요... 안/않!?",
]


@pytest.mark.parametrize("text", HARD_TEXTS)
def test_a_saved_tokenizer_gives_the_same_ids(
    text: str, trained: PreTrainedTokenizerFast, loaded: PreTrainedTokenizerFast
) -> None:
    assert loaded(text).input_ids == trained(text).input_ids
    assert loaded(text, "둘째 글").token_type_ids == trained(text, "둘째 글").token_type_ids


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("ㅋ", ["ㅋ"]),
        ("漢字", ["漢", "字"]),
        ("😀😀", ["😀", "😀"]),
        ("👍🏻", ["👍", "🏻"]),
        ("café", ["caf", "##é"]),
        ("!?", ["!", "?"]),
        ("", []),
    ],
)
def test_pieces(text: str, pieces: list[str], loaded: PreTrainedTokenizerFast) -> None:
    assert loaded.tokenize(text) == pieces


@pytest.mark.parametrize(
    "text", ["ㅋㅋㅋㅋ", "ㅠㅠ", "ㅇㅈ", "asdf", "1234567890", "Zq7", "ㄱㅏㄴ", "재밌어ㅋㅋ😀"]
)
def test_lone_jamo_digits_latin_and_emoji_are_never_unknown(
    text: str, loaded: PreTrainedTokenizerFast
) -> None:
    assert loaded.unk_token_id not in loaded(text).input_ids


def test_an_unknown_emoji_does_not_take_its_word_with_it(loaded: PreTrainedTokenizerFast) -> None:
    assert loaded.tokenize("최고🦖") == [*loaded.tokenize("최고"), "[UNK]"]


def test_decomposed_hangul_gives_the_ids_of_composed(loaded: PreTrainedTokenizerFast) -> None:
    text = "각 영화관에서 환불을 거절했습니다"
    assert loaded(unicodedata.normalize("NFD", text)).input_ids == loaded(text).input_ids


def test_case_and_accents_are_kept(loaded: PreTrainedTokenizerFast) -> None:
    assert loaded("PC").input_ids != loaded("pc").input_ids
    assert loaded("café").input_ids != loaded("cafe").input_ids
    assert loaded.decode(loaded("café PC").input_ids, skip_special_tokens=True) == "café PC"


def test_special_tokens_come_first_and_frame_pairs(loaded: PreTrainedTokenizerFast) -> None:
    assert loaded.convert_ids_to_tokens(range(5)) == list(SPECIAL_TOKENS)
    encoded = loaded("가", "나")
    assert [loaded.convert_ids_to_tokens(i) for i in encoded.input_ids] == [
        "[CLS]",
        "가",
        "[SEP]",
        "나",
        "[SEP]",
    ]
    assert encoded.token_type_ids == [0, 0, 0, 1, 1]


def test_vocabulary_is_a_multiple_of_128_and_padding_is_unreachable(
    comments: list[str],
) -> None:
    tokenizer = train_tokenizer(comments[:40], vocab_size=1_030)
    assert len(tokenizer) % 128 == 0
    unused = [t for t in tokenizer.get_vocab() if t.startswith("[unused")]
    ids = tokenizer("[unused0] [unused1]").input_ids
    assert not {tokenizer.convert_tokens_to_ids(token) for token in unused} & set(ids)


def test_two_trainings_on_one_corpus_give_one_tokenizer(comments: list[str]) -> None:
    hashes = {tokenizer_hash(train_tokenizer(comments, vocab_size=4_096)) for _ in range(3)}
    assert len(hashes) == 1


def test_hash_ignores_padding_state_and_sees_the_vocabulary(
    trained: PreTrainedTokenizerFast, comments: list[str]
) -> None:
    before = tokenizer_hash(trained)
    trained(["가", "나 다 라"], padding=True, truncation=True, max_length=8)
    assert tokenizer_hash(trained) == before
    assert tokenizer_hash(train_tokenizer(comments, vocab_size=2_048)) != before


def test_a_vocabulary_too_small_for_korean_is_refused() -> None:
    with pytest.raises(InputError, match=r"--vocab-size from 1024 .*found 500"):
        train_tokenizer(["가나다"], vocab_size=500)


def test_load_names_what_is_missing(tmp_path: Path, trained: PreTrainedTokenizerFast) -> None:
    with pytest.raises(InputError, match=r"tokenizer\.json, found none at .*nowhere"):
        load_tokenizer(tmp_path / "nowhere")
    trained.save_pretrained(tmp_path / "damaged")
    (tmp_path / "damaged" / "tokenizer.json").write_text('{"version": "1.0"')
    with pytest.raises(InputError, match="cannot read the tokenizer"):
        load_tokenizer(tmp_path / "damaged")
    trained.save_pretrained(tmp_path / "maskless")
    state = json.loads((tmp_path / "maskless" / "tokenizer.json").read_text())
    index = state["model"]["vocab"].pop("[MASK]")
    state["model"]["vocab"]["[MASQ]"] = index
    state["added_tokens"] = [t for t in state["added_tokens"] if t["content"] != "[MASK]"]
    (tmp_path / "maskless" / "tokenizer.json").write_text(json.dumps(state))
    config = tmp_path / "maskless" / "tokenizer_config.json"
    settings = json.loads(config.read_text())
    settings.pop("mask_token")
    config.write_text(json.dumps(settings))
    with pytest.raises(InputError, match=r"missing \[MASK\]"):
        load_tokenizer(tmp_path / "maskless")


def test_command_trains_and_refuses_to_overwrite(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tokenizer" / "train.py"), "--corpus", str(COMMENTS)]
    flags = ["--output", str(tmp_path / "made"), "--vocab-size", "2048"]
    done = subprocess.run([*command, *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(AutoTokenizer.from_pretrained(tmp_path / "made")) == 2_048
    again = subprocess.run([*command, *flags], capture_output=True, text=True)
    assert again.returncode == 2
    assert again.stderr.startswith("error: expected a new directory for --output")
    assert not list(tmp_path.glob(".tokenizer-*"))
