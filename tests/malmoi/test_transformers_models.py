"""A special token that somebody typed is text: in every kind of tokenizer, on every real path."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast, pipeline

from malmoi.inference.batching import PaddedBatch, tokenize_all
from malmoi.inference.classifier import Classifier
from malmoi.pretrain.data.tokenized import tokenize_corpus
from malmoi.text.cleaning.cleaner import CleaningSettings
from malmoi.text.corpus.clean_corpus import write_clean_corpus
from malmoi.text.record import Record
from malmoi.tokenizer.kinds import ModelKind
from malmoi.tokenizer.loading import load_pretraining_tokenizer
from malmoi.tokenizer.training import train_tokenizer
from malmoi.transformers_models import load_tokenizer, save_tokenizer

ROOT = Path(__file__).parents[2]
RELEASED = ("malmoi-small", "malmoi-medium-reviews", "malmoi-small-memos")
TYPED = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
TEXT = f"재미있다 {' '.join(TYPED)} 정말[SEP]그래요[MASK]를"
# All characters of TEXT have an entry, so that [UNK] is none of them for another reason.
TEXTS = ["재미있다 정말 그래요 를 [P A D] [U N K] [C L S] [S E P] [M A S K]"] * 3


def inside(ids: list[int], tokenizer: Any) -> list[int]:
    """Special ids between the first and the last."""
    return [number for number in ids[1:-1] if number in tokenizer.all_special_ids]


@pytest.mark.parametrize("kind", get_args(ModelKind))
def test_in_every_kind_of_tokenizer_and_in_the_ids_of_pretraining(
    kind: ModelKind, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    train_tokenizer(TEXTS, model=kind, vocab_size=1_024).save(own)
    for tokenizer in (
        load_pretraining_tokenizer(own),
        load_tokenizer(own),
        AutoTokenizer.from_pretrained(own),
    ):
        ids = tokenizer(TEXT)["input_ids"]
        assert inside(ids, tokenizer) == []
        assert (ids[0], ids[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
        assert "[SEP]" in tokenizer.decode(ids[1:-1]).replace(" ", "")

    record = Record(text=TEXT, source="a.txt", line=1, id="1")
    write_clean_corpus([record], tmp_path / "clean", CleaningSettings())
    tokenizer = load_pretraining_tokenizer(own)
    corpus = tokenize_corpus(
        tmp_path / "clean", tokenizer, corpus_sha256="0", max_length=128, cache=tmp_path / "cache"
    )
    assert len(corpus) == 1 and corpus.num_tokens > 20
    assert not set(corpus.ids.tolist()) & set(tokenizer.all_special_ids)


@pytest.mark.parametrize("name", RELEASED)
def test_in_the_released_ones(name: str) -> None:
    folder = str(ROOT / "checkpoints" / name)
    for tokenizer in (AutoTokenizer.from_pretrained(folder), load_tokenizer(folder)):
        assert tokenizer.tokenize("[SEP]") == ["[", "S", "##E", "##P", "]"]
        tokens = tokenize_all(tokenizer, [TEXT, "[CLS]"], 128, pairs=["[SEP]", "가"])
        for first, last in zip(tokens.offsets[:-1], tokens.offsets[1:], strict=True):
            # Of a pair one [SEP] is in the middle.
            assert inside(tokens.flat[first:last].tolist(), tokenizer) == [tokenizer.sep_token_id]


@pytest.mark.parametrize("name", RELEASED[1:])
def test_what_a_classifier_reads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ROOT / "checkpoints" / name
    classifier = Classifier.load(folder)
    seen: list[PaddedBatch] = []
    logits = classifier._engine.logits
    monkeypatch.setattr(
        classifier._engine, "logits", lambda batch: seen.append(batch) or logits(batch)
    )
    (prediction,) = classifier.predict([TEXT])
    (ids,) = seen[0].input_ids.tolist()
    assert inside(ids, AutoTokenizer.from_pretrained(folder)) == []
    stock = pipeline("text-classification", str(folder), top_k=None)
    assert stock.preprocess(TEXT)["input_ids"].tolist() == [ids]
    assert prediction.label in stock.model.config.label2id


def piece_model() -> Tokenizer:
    """As XLM-R's is converted: special entries of the score 0, which no piece beats."""
    entries = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "▁",
        *sorted({*"재미있다정말</s>padmask가"}),
        "<mask>",
    ]
    scored = [(entry, 0.0 if entry.startswith("<") and entry != "<" else -5.0) for entry in entries]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


def word_model() -> Tokenizer:
    """Cut at spaces only, so that a word may be a special entry."""
    entries = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<", *(f"##{c}" for c in "/spadmk>")]
    entries += ["s", "재미있다", "가", "/", "p", "m", *(f"{c}>" for c in "sdk")]
    tokenizer = Tokenizer(
        models.WordPiece({e: i for i, e in enumerate(entries)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


@pytest.mark.parametrize("model", [piece_model, word_model])
def test_in_those_of_others(model: Any, tmp_path: Path) -> None:
    tokenizer = model()
    tokenizer.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 0))
    roles = {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}
    stock = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{f"{role}_token": token for role, token in roles.items()}
    )
    stock.save_pretrained(tmp_path / "theirs")
    text = "재미있다 <s> </s> <pad> <mask>"
    special = {stock.cls_token_id, stock.sep_token_id, stock.pad_token_id, stock.mask_token_id}
    assert (
        set(AutoTokenizer.from_pretrained(tmp_path / "theirs")(text)["input_ids"][1:-1]) & special
    )
    loaded = load_tokenizer(str(tmp_path / "theirs"))
    tokens = tokenize_all(loaded, [text], 128)
    assert not set(tokens.flat.tolist()[1:-1]) & special
    # And in what is saved with the trained model.
    save_tokenizer(loaded, tmp_path / "saved")
    saved = AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert saved(text)["input_ids"] == tokens.flat.tolist()


def test_with_a_published_list_of_entries(tmp_path: Path) -> None:
    entries = [*TYPED, "가", "나", "[", "]", "S", "##E", "##P"]
    (tmp_path / "vocab.txt").write_text("\n".join(entries), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}), encoding="utf-8")
    for tokenizer in (load_pretraining_tokenizer(tmp_path), load_tokenizer(tmp_path)):
        ids = tokenizer("가 [SEP] 나")["input_ids"]
        assert tokenizer.convert_ids_to_tokens(ids[1:-1]) == [
            "가",
            "[",
            "S",
            "##E",
            "##P",
            "]",
            "나",
        ]
