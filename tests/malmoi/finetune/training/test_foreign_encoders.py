"""Encoders of others in k-fold: BERT, RoBERTa, DistilBERT and ELECTRA as they are published."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BigBirdConfig,
    BigBirdForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    ElectraConfig,
    ElectraForPreTraining,
    GPT2Config,
    GPT2LMHeadModel,
    ModernBertConfig,
    ModernBertForMaskedLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
    pipeline,
)

from malmoi import Classifier, cache
from malmoi.errors import InputError
from malmoi.finetune.kfold import main
from malmoi.finetune.settings import KfoldSettings
from malmoi.finetune.training.encoders import load_for_classification
from malmoi.transformers_models import load_tokenizer, longest_input
from tests.malmoi.finetune.conftest import WriteCsv, make_tokenizer, separable

SIZES = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16}


def bert(**changes: Any) -> Any:
    """As klue/roberta-base is made, BERT's code but for the token types."""
    return BertForMaskedLM(BertConfig(**SIZES, intermediate_size=32, **changes))


def roberta(**changes: Any) -> Any:
    """Positions begin behind the padding token's id."""
    changes = {"max_position_embeddings": 26, "type_vocab_size": 1} | changes
    return RobertaForMaskedLM(RobertaConfig(**SIZES, intermediate_size=32, **changes))


def distilbert(**changes: Any) -> Any:
    """No token types at all."""
    return DistilBertForMaskedLM(
        DistilBertConfig(n_layers=1, n_heads=2, dim=16, hidden_dim=32, **changes)
    )


def electra(**changes: Any) -> Any:
    """One token type."""
    sizes = SIZES | {"embedding_size": 16, "intermediate_size": 32}
    return ElectraForPreTraining(ElectraConfig(**sizes, type_vocab_size=1, **changes))


def modernbert(**changes: Any) -> Any:
    """Its network in ONNX computes a batch of the size that the exporter has seen, and no other."""
    sizes = SIZES | {"intermediate_size": 32, "max_position_embeddings": 128}
    marks = dict.fromkeys(("cls_token_id", "sep_token_id", "bos_token_id", "eos_token_id"), 2)
    return ModernBertForMaskedLM(ModernBertConfig(**sizes, **marks, **changes))


def bigbird(**changes: Any) -> Any:
    """Blocks for long texts, which cannot be computed in half precision."""
    sizes = SIZES | {"intermediate_size": 32, "max_position_embeddings": 512, "block_size": 16}
    return BigBirdForMaskedLM(BigBirdConfig(**sizes, num_random_blocks=2, **changes))


def decoder(**changes: Any) -> Any:
    """It names no padding token, and its classifier looks for the last token by it."""
    changes.pop("pad_token_id")
    return GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=1, n_head=2, n_positions=512, **changes))


SHAPES: dict[str, Callable[..., Any]] = {
    "klue/roberta": lambda **changes: roberta(**changes),
    "bert of one token type": lambda **changes: bert(type_vocab_size=1, **changes),
    "bert": bert,
    "distilbert": distilbert,
    "electra of one token type": electra,
}


def save(make: Callable[..., Any], folder: Path, tokenizer: PreTrainedTokenizerFast) -> Path:
    """A checkpoint with a BERT tokenizer beside it, which gives token types and no length."""
    torch.manual_seed(0)
    make(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["model_max_length"] = 1e30
    config["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    path.write_text(json.dumps(config), encoding="utf-8")
    return folder


def write_pairs(path: Path) -> Path:
    """Long enough pairs that a length of nobody's would leave the positions."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = [
            (f"{text} {text} {text}", f"{other} {number}", str(number % 2))
            for number, ((text, _), (other, _)) in enumerate(
                zip(separable()[:24], separable()[24:48], strict=True)
            )
        ]
        csv.writer(file).writerows([("sentence1", "sentence2", "label"), *rows])
    return path


def kfold(model: Path, data: Path, output: Path, **changes: Any) -> None:
    settings = {"folds": 2, "epochs": 1, "device": "cpu"} | changes
    main(KfoldSettings(model=str(model), data=data, output=output, **settings))


@pytest.mark.parametrize("shape", SHAPES)
def test_pairs(shape: str, tmp_path: Path) -> None:
    folder = save(SHAPES[shape], tmp_path / "theirs", make_tokenizer())
    data = write_pairs(tmp_path / "pairs.csv")
    kfold(folder, data, tmp_path / "run", task="pair", text_column="sentence1")
    saved = tmp_path / "run" / "model"
    # Whoever loads it gives the model what it can take.
    inputs = AutoTokenizer.from_pretrained(saved)("꿈", "일정", return_tensors="pt")
    assert (
        AutoModelForSequenceClassification.from_pretrained(saved)(**inputs).logits.isfinite().all()
    )
    assert ("token_type_ids" in inputs) == (shape == "bert")


@pytest.mark.parametrize("make", [modernbert, bigbird, decoder])
def test_kinds_of_today_are_trained_and_answer(
    make: Callable[..., Any],
    write_csv: WriteCsv,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("MALMOI_ENGINE", "auto")
    folder = save(make, tmp_path / "theirs", make_tokenizer())
    rows = [(f"{text} " * 40, label) for text, label in separable()[:24]]
    data = write_csv(rows)
    kfold(folder, data, tmp_path / "run", max_length=256)
    saved = tmp_path / "run" / "model"
    texts = [rows[0][0], "꿈"]
    exact = Classifier.load(saved, "torch-fp32").predict(texts)
    found = Classifier.load(saved, "auto").predict(texts)
    assert [one.label for one in found] == [one.label for one in exact]
    if make is modernbert:
        with pytest.raises(InputError, match=r"cannot export a ModernBert.*torch-fp32"):
            Classifier.load(saved, "onnx-int8")


def test_what_is_no_whole_model_of_transformers_is_one_line(tmp_path: Path) -> None:
    folder = save(bert, tmp_path / "theirs", make_tokenizer())
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Config"}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(InputError, match="brings code of its own, which is never run"):
        load_for_classification(folder, ["가", "나"])
    (folder / "config.json").rename(folder / "adapter_config.json")
    with pytest.raises(InputError, match="found a LoRA adapter: merge it into its base"):
        load_for_classification(folder, ["가", "나"])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_length_that_nobody_states(shape: str, tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    folder = save(SHAPES[shape], tmp_path / "theirs", tokenizer)
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    stated = config["max_position_embeddings"]
    loaded = load_tokenizer(str(folder))
    model = load_for_classification(folder, ["가", "나"])
    length = longest_input(model, loaded)
    assert length == (stated - 1 if "klue" in shape else stated)
    ids = torch.full((1, length), tokenizer.unk_token_id)
    assert model(input_ids=ids).logits.isfinite().all()
    if stated == 512:  # the default of the classes, which files may leave out
        del config["max_position_embeddings"]
        path.write_text(json.dumps(config), encoding="utf-8")
        assert longest_input(load_for_classification(folder, ["가", "나"]), loaded) == 512


def test_a_stock_pipeline_reads_what_is_longer_than_the_positions(
    tmp_path: Path, write_csv: Callable[..., Path]
) -> None:
    folder = save(SHAPES["klue/roberta"], tmp_path / "theirs", make_tokenizer())
    kfold(folder, write_csv(separable()), tmp_path / "run")
    classify = pipeline("text-classification", str(tmp_path / "run" / "model"))
    assert classify("꿈에서 하늘을 날았다 " * 30, truncation=True)


def no_cls(folder: Path) -> None:
    edit(folder, lambda backend: setattr(backend, "post_processor", processors.ByteLevel()))


def lower_casing(folder: Path) -> None:
    both = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    edit(folder, lambda backend: setattr(backend, "normalizer", both))


def foreign_words(folder: Path) -> None:
    entries = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "하루": 5, "movie": 6}
    other = Tokenizer(models.WordPiece(entries, unk_token="[UNK]"))
    other.pre_tokenizer = pre_tokenizers.Whitespace()
    other.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    other.save(str(folder / "tokenizer.json"))


def edit(folder: Path, change: Callable[[Tokenizer], None]) -> None:
    path = str(folder / "tokenizer.json")
    backend = Tokenizer.from_file(path)
    change(backend)
    backend.save(path)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (no_cls, "warning: the tokenizer puts no [CLS] before a text"),
        (lower_casing, "of the words lose their capitals, such as ABC"),
        (foreign_words, "of the words are [UNK] to the tokenizer, such as 정말"),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_told_before_training(
    spoil: Callable[[Path], None],
    said: str,
    tmp_path: Path,
    write_csv: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    tokenizer = make_tokenizer()
    tokenizer.add_tokens([*"abcABC"])
    folder = save(SHAPES["bert"], tmp_path / "theirs", tokenizer)
    rows = [(f"{text} ABC 정말", label) for text, label in separable()]
    kfold(folder, write_csv(rows), tmp_path / "well")
    assert "warning" not in capsys.readouterr().err
    spoil(folder)
    kfold(folder, write_csv(rows), tmp_path / "run")
    printed = capsys.readouterr()
    assert said in printed.err
    assert len(printed.err.splitlines()) == 1
