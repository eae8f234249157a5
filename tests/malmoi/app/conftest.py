"""A tiny classifier in place of a trained one, folders to work in, and the running app."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import torch
from sqlalchemy import insert
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    ElectraConfig,
    ElectraForSequenceClassification,
    PreTrainedTokenizerFast,
)

from malmoi.app.jobs import Jobs
from malmoi.labels.projects import ProjectStore
from malmoi.labels.tables import GuidelineRow, ProjectRow
from tests.malmoi.app.servers import Server, serving

LABELS = ["긍정", "부정", "중립"]


def make_model(run: Path) -> Path:
    """Write a run with a random three-label model; returns the model's directory."""
    model_dir = run / "model"
    model_dir.mkdir(parents=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    syllables = sorted(
        set("배송이빨라요좋다별로예요그냥저냥환불해주세음질영화재미있없었다가격추천")
    )
    pieces = special + syllables + [f"##{syllable}" for syllable in syllables]
    vocabulary = {piece: place for place, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    ).save_pretrained(model_dir)
    torch.manual_seed(0)
    config = ElectraConfig(
        vocab_size=len(pieces),
        embedding_size=16,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        id2label=dict(enumerate(LABELS)),
        label2id={label: place for place, label in enumerate(LABELS)},
    )
    ElectraForSequenceClassification(config).save_pretrained(model_dir)
    # The mark of a complete run.
    (run / "report.json").write_text("{}", encoding="utf-8")
    return model_dir


@pytest.fixture
def workplace(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A working directory without labels or settings of the machine's own; that of the server."""
    folder = tmp_path
    if "server" in request.fixturenames:
        folder = request.getfixturevalue("lasting_server").log.parent
        put_labels_away(folder)
        shutil.rmtree(folder / "runs" / "finetune", ignore_errors=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("malmoi.app.jobs._JOBS", Jobs())
    # Streamlit's own test runner has no browser, and gives a mock for its cookies.
    monkeypatch.setattr("malmoi.app.invitations._kept_by_browser", str)
    monkeypatch.setenv("MALMOI_HOME", ".")
    monkeypatch.delenv("MALMOI_DATABASE", raising=False)
    return folder


def put_labels_away(folder: Path) -> None:
    """Give a running server another database, with ids of projects that it does not know yet."""
    number = len(list(folder.glob("before-*-labels.db")))
    for file in folder.glob("runs/labels.db*"):
        # Not removed: the server knows a new file by its number, which could be used again.
        file.rename(folder / f"before-{number}-{file.name}")
    if not (number := len(list(folder.glob("before-*-labels.db")))):
        return
    now = datetime.now(UTC)
    project = {
        **{"id": 100 * number, "name": f"before {number}", "kind": "single", "random_share": 0},
        **{"annotators_per_text": 1, "show_suggestion": True, "text_order": "plain"},
        **{"lease_seconds": 600, "created_by": "nobody", "created_at": now, "archived_at": now},
    }
    guideline = {"project_id": 100 * number, "version": 1, "markdown": "", "author": "nobody"}
    store = ProjectStore(f"sqlite:///{folder}/runs/labels.db")
    with store.engine.begin() as connection:
        connection.execute(insert(ProjectRow).values(project))
        connection.execute(insert(GuidelineRow).values(guideline | {"created_at": now}))


@pytest.fixture
def trained_workplace(workplace: Path) -> Path:
    """A working directory with one fine-tuning run."""
    make_model(workplace / "runs" / "finetune" / "x")
    return workplace


@pytest.fixture(scope="session")
def lasting_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The running app, for all tests; to start it takes seconds. It does not learn."""
    folder = tmp_path_factory.mktemp("workplace")
    with serving(folder, settings={"MALMOI_LEARNING": "off"}) as running:
        yield running


@pytest.fixture
def server(workplace: Path, lasting_server: Server) -> Server:
    """The running app, in that directory."""
    return lasting_server


@pytest.fixture
def address(server: Server) -> str:
    """Of the running app."""
    return server.address
