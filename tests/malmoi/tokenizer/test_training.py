"""Training and loading: bounds, hashes, WordPiece's own ways, what a damaged directory says."""

import json
import random
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from malmoi.errors import InputError
from malmoi.tokenizer.loading import load_pretraining_tokenizer
from malmoi.tokenizer.training import train_tokenizer
from malmoi.transformers_models import tokenizer_hash
from tests.malmoi.tokenizer.conftest import Pair


@pytest.fixture(scope="module")
def wordpiece(pair_of: Callable[..., Pair]) -> Pair:
    return pair_of("wordpiece")


def test_an_unknown_character_does_not_take_its_word_with_it(wordpiece: Pair) -> None:
    tokenize = wordpiece.loaded.tokenize
    assert tokenize("최고🦖") == [*tokenize("최고"), "[UNK]"]
    assert tokenize("최고龘최고") == [*tokenize("최고"), "[UNK]", *tokenize("최고")]
    assert tokenize("кот가나") == ["[UNK]", *tokenize("가나")]


def test_hash_ignores_padding_state_and_sees_the_vocabulary(
    wordpiece: Pair, comments: list[str]
) -> None:
    tokenizer = wordpiece.trained.tokenizer
    before = tokenizer_hash(tokenizer)
    tokenizer(["가", "나 다 라"], padding=True, truncation=True, max_length=8)
    assert tokenizer_hash(tokenizer) == before
    smaller = train_tokenizer(comments, vocab_size=2_048).tokenizer
    assert tokenizer_hash(smaller) != before


def test_arguments_out_of_bounds_are_refused() -> None:
    with pytest.raises(InputError, match=r"--vocab-size from 1024 .*found 500"):
        train_tokenizer(["가나다"], vocab_size=500)
    with pytest.raises(InputError, match="--min-frequency of 0 or more, found -1"):
        train_tokenizer(["가나다"], min_frequency=-1)
    with pytest.raises(InputError, match="--model wordpiece, unigram, bpe, found words"):
        train_tokenizer(["가나다"], model="words")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected texts to train a tokenizer on, found none"):
        train_tokenizer(["", "  "])


def test_what_is_saved_names_a_class_that_transformers_4_knows(
    tmp_path: Path, wordpiece: Pair
) -> None:
    wordpiece.trained.save(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast" and "backend" not in config
    text = "아 진짜 ㅋㅋㅋ 재밌어요ㅠㅠ"
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again(text)["input_ids"] == wordpiece.trained.tokenizer(text)["input_ids"]


def test_load_names_what_is_missing(tmp_path: Path, wordpiece: Pair) -> None:
    trained = wordpiece.trained.tokenizer
    with pytest.raises(InputError, match=r"tokenizer\.json, .*found none at .*nowhere"):
        load_pretraining_tokenizer(tmp_path / "nowhere")
    trained.save_pretrained(tmp_path / "damaged")
    (tmp_path / "damaged" / "tokenizer.json").write_text('{"version": "1.0"')
    with pytest.raises(InputError, match="cannot read the tokenizer"):
        load_pretraining_tokenizer(tmp_path / "damaged")
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
    with pytest.raises(InputError, match=r"missing \[MASK\]; train"):
        load_pretraining_tokenizer(tmp_path / "maskless")
    trained.save_pretrained(tmp_path / "roleless")
    config = tmp_path / "roleless" / "tokenizer_config.json"
    settings = json.loads(config.read_text())
    for role in ("cls_token", "pad_token"):
        settings.pop(role)
    config.write_text(json.dumps(settings))
    with pytest.raises(
        InputError, match=r"missing the role of \[CLS\], the role of \[PAD\]; train"
    ):
        load_pretraining_tokenizer(tmp_path / "roleless")


def test_a_list_of_entries_beside_its_configuration_is_enough(tmp_path: Path) -> None:
    for config in ({}, {"model_type": "bert"}, None):
        entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "가", "##나", "A"]
        (tmp_path / "vocab.txt").write_text("\n".join(entries), encoding="utf-8")
        (tmp_path / "tokenizer_config.json").write_text(
            json.dumps({"do_lower_case": False, "unk_token": "[UNK]"}), encoding="utf-8"
        )
        if config is not None:
            (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
        tokenizer = load_pretraining_tokenizer(tmp_path)
        assert tokenizer("가나 A")["input_ids"] == [2, 5, 6, 7, 3]


def test_foreign_letters_cost_no_syllable_its_word(comments: list[str]) -> None:
    """Kana, Cyrillic and Greek, every letter of them twice in a vocabulary that is tiny."""
    for vocab_size in (1_024, 1_280, 2_048):
        letters = [
            chr(c) for c in (*range(0x3041, 0x3097), *range(0x430, 0x450), *range(0x3B1, 0x3CA))
        ]
        draw = random.Random(3)
        foreign = ["".join(draw.choices(letters, k=12)) for _ in range(400)]
        tokenizer = train_tokenizer([*comments, *foreign], vocab_size=vocab_size).tokenizer
        assert len(tokenizer) == vocab_size
        text = unicodedata.normalize("NFC", "".join(comments))
        hangul = [character for character in text if "가" <= character <= "힣"]
        words = [f"{first}{second}" for first, second in pairwise(hangul)]
        ids = tokenizer(words, add_special_tokens=False)["input_ids"]
        assert not any(tokenizer.unk_token_id in each for each in ids)
