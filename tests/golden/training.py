"""What is learnt: 20 steps of pre-training, then k-fold of every task from those weights."""

import csv
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.golden import product
from tests.golden.corpora import few_comments, make_tokenizer
from tests.golden.entries import Golden

# Flags of trainings that take seconds.
TINY = ["--folds", "2", "--epochs", "1", "--jobs", "1", "--max-length", "32"]
# Files of a classifier in which nothing is computed.
EXACT = ("tokenizer.json", "tokenizer_config.json", "learnt_texts.npy")
FAST = ["--quick", "--folds", "3", "--set", "linear.morphemes=false"]


def run_fast(golden: Golden) -> None:
    """The weights after 20 steps, and the linear model alone."""
    pretrain(golden)
    flags = [*FAST, "--set", "linear.frozen_encoder=false"]
    kfold(golden, "quick", "memos.csv", *flags)


def run(golden: Golden) -> None:
    """All other tasks; `run_fast` has made the encoder."""
    _write_tasks()
    encoder = ["--model", "pretrained/discriminator"]
    pretrain(golden, "electra", "--recipe", "electra")
    pretrain(golden, "mlm", "--recipe", "mlm", "--set", "batching.rows=packed")
    kfold(golden, "single", "memos.csv", *TINY, *encoder, "--set", "linear.morphemes=false")
    kfold(golden, "quick-encoder", "reviews.csv", *FAST, *encoder, "--group-near-duplicates")
    for task, name in (("multi", "multi"), ("pair", "pair"), ("pair-regression", "value")):
        kfold(golden, name, f"{name}.csv", *TINY, *encoder, "--task", task)
    compared = product.run_malmoi("compare", "kfold-single", "kfold-quick", "--texts", "3").done()
    golden.add("compare/single-quick", compared.out, of_cpu=True)


def pretrain(golden: Golden, name: str = "", *flags: str) -> None:
    """Train 20 steps; the last figures stand beside the hash of each network."""
    output = Path(f"pretrained-{name}" if name else "pretrained")
    product.run_pretraining(
        *("--corpus", str(few_comments()), "--tokenizer", str(make_tokenizer())),
        *("--max-steps", "20", "--tokens-per-batch", "256", "--precision", "fp32"),
        *("--device", "cpu", "--init", "random", "--output", str(output), *flags),
    ).done()
    name = name or "default"
    run_json = json.loads((output / "run.json").read_text(encoding="utf-8"))
    figures = run_json["final_metrics"]
    loss = {key: round(value, 5) for key, value in figures.items() if key.endswith("tor_loss")}
    for path in sorted(output.glob("*/model.safetensors")):
        entry = f"pretrain/{name}/{path.parent.name}"
        golden.add(entry, path.read_bytes(), of_cpu=True, **loss)
    golden.add(f"pretrain/{name}/plan", run_json["plan"])
    golden.add(f"pretrain/{name}/run.json", run_json, of_cpu=True)


def kfold(golden: Golden, name: str, data: str, *flags: str) -> None:
    """Cross-validate; which text is in which fold is the same on every machine."""
    output = Path(f"kfold-{name}")
    product.run_kfold("--data", data, "--output", str(output), "--device", "cpu", *flags).done()
    report = json.loads((output / "report.json").read_text(encoding="utf-8"))
    score = next(report[key] for key in report if key.startswith("mean_"))
    golden.add(f"kfold/{name}/report.json", report, of_cpu=True, score=round(score, 5))
    for part in ("plan", "data"):
        golden.add(f"kfold/{name}/{part}", report[part])
    with (output / "predictions.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    golden.add(f"kfold/{name}/predictions.csv", rows, of_cpu=True, rows=len(rows))
    known = ("id", "text", "pair", "label", "fold", "seed")
    folds = [{key: row[key] for key in known if key in row} for row in rows]
    golden.add(f"kfold/{name}/folds", folds, rows=len(rows))
    # Folders in it are copies of encoders.
    for path in sorted(path for path in (output / "model").iterdir() if path.is_file()):
        content: Any = path.read_bytes()
        if path.suffix == ".json":
            content = json.loads(content)
        golden.add(f"kfold/{name}/model/{path.name}", content, of_cpu=path.name not in EXACT)
    if (page := output / "report.html").is_file():
        golden.add(f"kfold/{name}/report.html", page.read_text("utf-8"), of_cpu=True)


def _write_tasks() -> None:
    """Tables of several labels, of pairs and of values, out of the sample memos."""
    with Path("memos.csv").open(encoding="utf-8", newline="") as file:
        memos = list(csv.DictReader(file))
    near = list(pairwise(memos))
    tables: dict[str, list[dict[str, str]]] = {
        "multi": [
            {"text": f"{a['text']} {b['text']}", "labels": f"{a['label']},{b['label']}"}
            if a["label"] != b["label"]
            else {"text": a["text"], "labels": a["label"]}
            for a, b in near
        ],
        "pair": [
            {
                "sentence1": a["text"],
                "sentence2": b["text"],
                "label": "같음" if a["label"] == b["label"] else "다름",
            }
            for a, b in near
        ],
        "value": [
            {"sentence1": a["text"], "sentence2": b["text"], "score": str(n % 6)}
            for n, (a, b) in enumerate(near)
        ],
    }
    for name, rows in tables.items():
        with Path(f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
