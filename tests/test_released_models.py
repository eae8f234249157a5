"""The checkpoints that the repository carries: stock, whole, small, and what their cards say."""

import hashlib
import importlib
import json
import re
import statistics
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForPreTraining,
    AutoTokenizer,
    pipeline,
)

from malmoi.command_line import run_command
from malmoi.model_folders import find_classifiers, find_encoder
from malmoi.pretrain.config.settings import PretrainSettings
from malmoi.pretrain.run import main

ROOT = Path(__file__).parents[1]
RELEASED = ROOT / "checkpoints"
ENCODERS = ("malmoi-small", "malmoi-medium")
CLASSIFIERS = {
    "malmoi-medium-reviews": {"긍정", "부정", "중립"},
    "malmoi-small-memos": {"꿈", "일기", "일정", "메모", "오류"},
}


def test_no_file_names_a_place_of_the_machine_that_made_it() -> None:
    """As an exported network does, in every node, where nobody takes it out."""
    files = [path for path in RELEASED.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if b"site-packages" in path.read_bytes()] == []


def test_they_are_at_most_110_megabytes() -> None:
    """Whoever clones the repository downloads them."""
    assert sum(path.stat().st_size for path in RELEASED.rglob("*") if path.is_file()) < 110e6


@pytest.fixture(params=ENCODERS)
def released(request: pytest.FixtureRequest) -> Path:
    """A released encoder's folder."""
    return RELEASED / request.param


def test_the_encoder_is_what_a_stock_class_loads(released: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(released)
    texts = ["이 영화 진짜 재밌어요 ㅋㅋㅋ 강추 👍😂", "배송이 너무 느려요 ㅠㅠ 😡"]
    inputs = tokenizer(texts, return_tensors="pt", padding=True)
    assert tokenizer.unk_token_id not in inputs["input_ids"]
    encoder, report = AutoModel.from_pretrained(released, output_loading_info=True)
    assert not report["missing_keys"] and encoder.dtype == torch.float32
    with torch.inference_mode():
        assert encoder(**inputs).last_hidden_state.isfinite().all()


def test_the_discriminator_knows_a_word_out_of_place(released: Path) -> None:
    """Of twenty plain sentences, the word put in by chance is found more suspicious than most."""
    tokenizer = AutoTokenizer.from_pretrained(released)
    model = AutoModelForPreTraining.from_pretrained(released).eval()
    sentences = (ROOT / "corpora" / "comments" / "videos.txt").read_text("utf-8").splitlines()
    ranks = []
    for number, sentence in enumerate(line for line in sentences if 15 < len(line) < 60):
        if number == 50:
            break
        ids = tokenizer(sentence, return_tensors="pt")["input_ids"]
        place = ids.shape[1] // 2
        ids[0, place] = 3_000 + 97 * number % 9_000
        with torch.inference_mode():
            suspicion = model(input_ids=ids).logits[0, 1:-1]
        ranks.append(float((suspicion < suspicion[place - 1]).float().mean()))
    # 0.5 is what chance would give.
    assert sum(ranks) / len(ranks) > 0.75


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "malmoi-medium-reviews",
            {
                "배우들 연기도 좋고 정말 재미있게 봤어요 추천합니다": "긍정",
                "돈이 아깝다 최악이고 지루해서 중간에 나왔다": "부정",
                "양도 많고 맛있어요": "긍정",
                "두 번 쓰고 고장났습니다": "부정",
                "그냥저냥 먹을만해요": "중립",
            },
        ),
        (
            "malmoi-small-memos",
            {
                "내일 오후 3시 치과 예약": "일정",
                "하늘을 날다가 떨어지는 꿈을 꿨다": "꿈",
                "ㅁㄴㅇㄻㄴㅇㄹ": "오류",
            },
        ),
    ],
)
def test_the_classifiers_in_a_stock_pipeline(name: str, told: dict[str, str]) -> None:
    classify = pipeline("text-classification", str(RELEASED / name))
    assert set(classify.model.config.id2label.values()) == CLASSIFIERS[name]
    assert {text: classify(text)[0]["label"] for text in told} == told


def test_they_are_what_is_taken_where_there_is_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").symlink_to(RELEASED)
    assert find_encoder(tmp_path).name == "malmoi-small"
    assert {path.name for path in find_classifiers(tmp_path)} == set(CLASSIFIERS)


def test_they_are_small_have_a_card_and_name_no_folder_of_the_machine() -> None:
    for name in (*ENCODERS, *CLASSIFIERS):
        folder = RELEASED / name
        files = [path for path in folder.rglob("*") if path.is_file()]
        for network in {path.parent for path in files}:  # the generator is one of its own
            assert sum(path.stat().st_size for path in files if path.parent == network) <= 30e6
        assert "license: apache-2.0" in (folder / "README.md").read_text(encoding="utf-8")
        for path in files:
            if path.suffix == ".json" and path.name != "tokenizer.json":  # which has a token "/"
                text = path.read_text(encoding="utf-8")
                assert '"/' not in text, path
                json.loads(text)


def test_the_python_on_their_cards_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    cards = {path: path.read_text(encoding="utf-8") for path in RELEASED.glob("*/README.md")}
    blocks = [
        compile(block, str(path), "exec")
        for path, card in cards.items()
        for block in re.findall(r"^```python\n(.*?)^```", card, re.DOTALL | re.MULTILINE)
    ]
    assert len(cards) == 5 and len(blocks) >= len(cards)
    for block in blocks:
        exec(block, {})


def test_their_tokenizers_are_of_a_class_that_transformers_4_knows_too() -> None:
    found = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(RELEASED.rglob("tokenizer_config.json"))
    ]
    assert len(found) == 5
    assert {config["tokenizer_class"] for config in found} == {"PreTrainedTokenizerFast"}


def test_who_has_read_reviews_of_a_test_file_says_so() -> None:
    for name in (*ENCODERS, "malmoi-medium-reviews"):
        card = (RELEASED / name / "README.md").read_text(encoding="utf-8")
        assert "official `ratings_test.txt`" in " ".join(card.split()), name


def test_the_scores_have_the_figures_of_the_card() -> None:
    def figures(line: str) -> list[str]:
        return re.findall(r"(?<![\d.])\d\d\.\d\d(?!\d)", line)

    card = (RELEASED / "malmoi-small" / "README.md").read_text(encoding="utf-8")
    page = (RELEASED.parent / "docs" / "scores.md").read_text(encoding="utf-8")
    section = page.partition("## The encoder")[2].partition("\n## ")[0]
    # The encoder, random weights and the linear model.
    own = [figures(line) for line in card.splitlines() if line.startswith("|")]
    rows = [line for line in section.splitlines() if line.startswith("|") and figures(line)]
    assert len(rows) == 6
    assert not [row for row in rows if figures(row) not in own]


def test_the_card_written_by_hand_has_the_figures_of_the_results() -> None:
    card = (RELEASED / "malmoi-medium" / "README.md").read_text(encoding="utf-8")
    results = ROOT / "lab" / "benchmarks" / "results"
    runs = json.loads((results / "quality.json").read_text(encoding="utf-8"))["runs"]
    weights = hashlib.sha256(
        (RELEASED / "malmoi-medium" / "model.safetensors").read_bytes()
    ).hexdigest()
    for task, metric in (
        ("korsts", "spearman"),
        ("questions", "accuracy"),
        ("kote", "macro_f1"),
        ("hate", "macro_f1"),
    ):
        scores = [
            row[metric]
            for row in runs
            if row.get("weights_sha256") == weights
            and (row["task"], row["part"], row["encoder"]) == (task, "test", "malmoi-medium")
        ]
        assert len(scores) == 3
        assert f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f}" in card
    found = json.loads((results / "detection.json").read_text(encoding="utf-8"))["rows"]
    (own,) = [
        row["mean"]
        for row in found
        if row["weights_sha256"] == weights and row["way"] == "own generator"
    ]
    assert f"AUC {own['auc']:.1f}" in card and f"loss {own['loss']:.3f}" in card
    assert f"{own['base_rate_loss']:.3f}" in card and f"{own['generator_accuracy']:.1f}%" in card


def test_the_cards_have_the_numbers_of_the_records_and_results_of_today() -> None:
    """If not: python -m lab.release.make --cards."""
    cards = importlib.import_module("lab.release.cards")
    tasks = dict(zip(("reviews", "memos"), (RELEASED / name for name in CLASSIFIERS), strict=True))
    encoder = RELEASED / "malmoi-small"
    folders = cards.ReleasedFolders(encoder=encoder, classifiers=tasks)
    blocks = {encoder: cards.encoder_numbers(folders)}
    blocks |= {folder: cards.classifier_numbers(folder, task) for task, folder in tasks.items()}
    for folder, block in blocks.items():
        card = (folder / "README.md").read_text(encoding="utf-8")
        assert cards.with_numbers(card, block, folder) == card, folder.name


def test_pre_training_goes_on_from_the_encoder(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = tmp_path / "mine.txt"
    lines = (ROOT / "corpora" / "comments" / "shops.txt").read_text("utf-8").splitlines()
    corpus.write_text("\n".join(lines[:200]) + "\n", encoding="utf-8")
    # One step of all the lines, by the weights as they are released.
    given = ["--corpus", str(corpus), "--init", str(released), "--max-steps", "1"]
    given += ["--set", "objective.unigram_fraction=1"]
    given += ["--set", "execution.log_steps=1", "--tokens-per-batch", "8192", "--output", "run"]
    assert run_command(PretrainSettings, main, "", arguments=given) == 0
    rows = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    (row,) = map(json.loads, rows)
    # It finds replaced tokens from its first step; a new network finds none.
    assert row["discriminator_recall"] > 0.3
