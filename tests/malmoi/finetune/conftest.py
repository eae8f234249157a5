"""Tiny real models, made in the test: no network, a second a training."""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    ElectraConfig,
    ElectraForPreTraining,
    ElectraForSequenceClassification,
    PreTrainedTokenizerFast,
)

from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.found_texts import add_texts
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore

LABELS = ["꿈", "일기", "일정"]
OPENINGS = {
    "꿈": ["꿈에서 하늘을 날았다", "악몽을 꾸다 깼다", "꿈속에 호랑이가 나왔다"],
    "일기": ["오늘은 기분이 좋았다", "친구와 싸워서 속상했다", "하루 종일 집에서 쉬었다"],
    "일정": ["내일 세 시에 회의", "금요일 저녁 약속", "다음 주 병원 예약"],
}
ENDINGS = [
    "",
    " 정말",
    " 그리고 비가 왔다",
    " 엄마랑 같이",
    " 아침에",
    " 조금 늦게 서울에서",
    " 또",
]

WriteCsv = Callable[[Iterable[tuple[str, str]]], Path]


def separable() -> list[tuple[str, str]]:
    """63 different (text, label) rows whose label is in their words."""
    return [
        (opening + ending, label)
        for label, openings in OPENINGS.items()
        for opening in openings
        for ending in ENDINGS
    ]


def save_labels(url: str, rows: Iterable[tuple[str, str]], project: str = "메모") -> None:
    """Make a project of the app in a label database, with (text, label) rows that one labelled."""
    texts, labels = zip(*rows, strict=True)
    names = [ProjectLabel(name=label) for label in sorted(set(labels))]
    new = NewProject(name=project, labels=names)
    access = ProjectStore(url).create(Person(name="가나", is_local=True), new)
    ids = add_texts(access, texts, "texts")
    save_acts(
        access,
        [
            Act(text_id=text, kind="label", labels=[label], request_id=f"{project}-{number}")
            for number, (text, label) in enumerate(zip(ids, labels, strict=True))
        ],
    )


def make_tokenizer(texts: Iterable[str] | None = None) -> PreTrainedTokenizerFast:
    """One token a character of these texts, by default of `separable`; split by words."""
    texts = [text for text, _ in separable()] if texts is None else texts
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    characters = sorted({character for text in texts for character in text} - {" "})
    pieces = [*special, *characters, *(f"##{character}" for character in characters)]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def tiny_config(tokenizer: PreTrainedTokenizerFast, **changes: object) -> ElectraConfig:
    """2 layers, 32 wide."""
    sizes: dict[str, object] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "embedding_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "pad_token_id": tokenizer.pad_token_id,
    }
    return ElectraConfig(**(sizes | changes))


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    # At these sizes a second thread only waits for the first.
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A discriminator with its tokenizer; random weights, large enough to learn from quickly."""
    directory = tmp_path_factory.mktemp("encoder") / "discriminator"
    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    ElectraForPreTraining(tiny_config(tokenizer, initializer_range=0.2)).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


@pytest.fixture(scope="session")
def classifier_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier that was not trained; its weights are large, so that probabilities differ."""
    directory = tmp_path_factory.mktemp("run") / "memos-1" / "model"
    tokenizer = make_tokenizer()
    config = tiny_config(
        tokenizer,
        id2label=dict(enumerate(LABELS)),
        label2id={label: index for index, label in enumerate(LABELS)},
        initializer_range=0.3,
    )
    torch.manual_seed(1)
    ElectraForSequenceClassification(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


@pytest.fixture
def write_csv(tmp_path: Path) -> WriteCsv:
    """Write (text, label) rows to a CSV file and return its path."""

    def write(rows: Iterable[tuple[str, str]]) -> Path:
        path = tmp_path / "memos.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *rows])
        return path

    return write
