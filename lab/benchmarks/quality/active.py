"""How many labels does learning while labelling save?

    python -m lab.benchmarks.quality.active --data FOLDER

Simulated annotators, who give each text the label that it has in its file, label 20 texts at a
time. After each 20 (from 400 labels on after each twentieth of them) the quick classifier of
`malmoi/app/learning` is fitted on what they have labelled and scored on texts held out; then an
order chooses the next ones from a pool. What counts is how many labels it takes to get 90% of the
macro F1 of a quick classifier of all training labels, twice in a row.

Orders: `random`; `uncertainty`, the smallest margin first; `ours`, which is what the app does: the
margin, and a tenth at random, which the app needs for an honest score. `entropy`, `pairs` and
`unlike` were tried, too. The choice was made by the dev part, which no result of the test part has
seen.

What is measured is kept, so that the same command goes on; each row is one order of one draw.
"""

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lab.benchmarks.data import DataSettings
from lab.benchmarks.quality.downstream import Results
from lab.benchmarks.quality.tasks import TASKS, Rows
from malmoi.app.learning.ranking import ranked, uncertainty
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.inference.linear.bags import character_keys, count, vocabulary_of, weighted
from malmoi.inference.linear.quick import QuickTrainer

RESULTS = Path(__file__).parents[1] / "results" / "active.json"
BATCH = 20
ENOUGH = 0.9  # of the F1 of all labels
RANDOM_SHARE = 0.1  # as projects have by default
# Texts that are held out to score on and to choose by, each at most a fifth of a task's.
HELD_OUT = 2_000
_BLOCK = 5 * BATCH
Order = Callable[[list[str], np.ndarray, np.random.Generator], np.ndarray]


def _random(texts: list[str], said: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    return draw.permutation(len(texts))


def _by_margin(texts: list[str], said: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    return ranked(said)


def _by_entropy(texts: list[str], said: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    return np.argsort(-uncertainty(said, "entropy"), kind="stable")


def _pairs(texts: list[str], said: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """By the margin; in each block the pairs of labels in question take turns."""
    order = _by_margin(texts, said, draw)
    pairs = np.sort(np.argsort(-said[order], axis=1, kind="stable")[:, :2], axis=1)
    turns: dict[tuple[int, int, int], int] = {}
    keys = []
    for place, (one, other) in enumerate(pairs.tolist()):
        kind = (place // _BLOCK, one, other)
        turns[kind] = turns.get(kind, -1) + 1
        keys.append((place // _BLOCK, turns[kind], place))
    return order[[place for _, _, place in sorted(keys)]]


def _ours(texts: list[str], said: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    best = ranked(said)[:BATCH]
    number = int((draw.random(BATCH) < RANDOM_SHARE).sum())
    others = draw.permutation(np.setdiff1d(np.arange(len(texts)), best))[:number]
    return np.concatenate([others, best])


def _unlike(texts: list[str], said: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Margin times the distance to the most similar text that was taken before.

    Greedy k-center (Sener and Savarese 2018, section 5, https://arxiv.org/abs/1708.00489), weighed,
    among the 1,000 most uncertain; the distance is 1 less the cosine of the TF-IDF of n-grams.
    """
    unsure = uncertainty(said)
    near = np.argsort(-unsure, kind="stable")[:1_000]
    matrix = _tf_idf([texts[place] for place in near])
    distance = np.ones(len(near))
    chosen: list[int] = []
    for _ in range(min(BATCH, len(near))):
        gain = (unsure[near] + 1e-6) * distance
        gain[chosen] = -1
        chosen.append(int(gain.argmax()))
        similar = (matrix @ matrix[chosen[-1]].T).toarray()[:, 0]
        distance = np.minimum(distance, 1 - similar)
    return near[chosen]


def _tf_idf(texts: Sequence[str]) -> Any:
    """Rows of length 1; [M, n-grams that stand in two texts or more]."""
    from scipy.sparse import csr_matrix

    keys = character_keys(texts)
    bags = count(keys, vocabulary_of(keys, 2))
    with_it = np.bincount(bags.columns, minlength=bags.size)
    idf = np.log((1 + bags.texts) / (1 + with_it)).astype(np.float32)
    values = weighted(bags, idf)
    lengths = np.sqrt(np.bincount(bags.rows, weights=values * values, minlength=bags.texts))
    values = values / np.where(lengths > 0, lengths, 1)[bags.rows]
    return csr_matrix((values, (bags.rows, bags.columns)), shape=(bags.texts, max(1, bags.size)))


ORDERS: dict[str, Order] = {
    "random": _random,
    "uncertainty": _by_margin,
    "ours": _ours,
    "pairs": _pairs,
    "entropy": _by_entropy,
    "unlike": _unlike,
}


@dataclass(kw_only=True)
class ActiveSettings(DataSettings):
    """Which tasks and orders, how often, how far."""

    tasks: str = "memos,written,nsmc"
    """Comma-separated tasks of one label a text."""
    orders: str = "random,uncertainty,ours"
    """Comma-separated orders; also pairs, entropy, unlike."""
    draws: int = 5
    """Draws of the pool and of the first 20 texts."""
    part: Literal["test", "dev"] = "test"
    """Which texts are scored; orders are chosen by dev."""
    pool: int = 5_000
    """Texts to choose from, at most: as many as the app looks at in a round."""
    most_labels: int = 2_500
    """An annotator gives up here."""
    encoder: str | None = None
    """Folder of an encoder that is not trained, whose numbers may help; none by default."""
    output: Path = RESULTS
    """JSON file of the results; the plot stands beside it."""


def main(settings: ActiveSettings) -> None:
    """Measure what is missing, then print the table and draw the plot."""
    tasks, orders = settings.tasks.split(","), settings.orders.split(",")
    for kind, named, known in (
        ("tasks", tasks, [name for name, one in TASKS.items() if one.task == "single"]),
        ("orders", orders, list(ORDERS)),
    ):
        if unknown := [name for name in named if name not in known]:
            raise InputError(f"expected --{kind} of {', '.join(known)}, found {unknown[0]}")
    results = Results(settings.output)
    for name in tasks:
        try:
            for file in TASKS[name].needs:
                file.find(settings.folder)
        except InputError as error:
            print(f"{name} is left out: {error}", flush=True)
            continue
        _measure(name, orders, settings, results)
    rows = [
        row for row in results.rows if row["part"] == settings.part and row.get("order") in orders
    ]
    _show(rows)
    _plot(rows, settings.output.with_suffix(".png"))


def _measure(name: str, orders: list[str], settings: ActiveSettings, results: Results) -> None:
    learn, held_out = _split(TASKS[name].train(settings.folder), settings.part)
    labels = TASKS[name].labels
    trainer = QuickTrainer(_encoder(settings.encoder))
    key: dict[str, Any] = {"task": name, "part": settings.part, "encoder": settings.encoder}
    if not results.of(**key, order="all"):
        began = time.perf_counter()
        f1 = _score(trainer, learn, held_out, labels)[0]
        seconds = round(time.perf_counter() - began, 1)
        results.add(
            key | {"order": "all", "labels": len(learn.texts), "macro_f1": f1, "seconds": seconds}
        )
    wanted = ENOUGH * results.of(**key, order="all")[0]["macro_f1"]
    for draw in range(settings.draws):
        for order in orders:
            one = key | {"order": order, "draw": draw, "pool": settings.pool}
            if results.of(**one):
                continue
            began = time.perf_counter()
            curve = _labelling(trainer, learn, held_out, labels, order, draw, wanted, settings)
            results.add(
                one
                | {
                    "needed": _needed(curve, wanted),
                    "wanted_f1": round(wanted, 4),
                    "seconds": round(time.perf_counter() - began, 1),
                    "curve": curve,
                }
            )


def _split(rows: Rows, part: str) -> tuple[Rows, Rows]:
    """Texts to draw from, and those to score on; no text is in both, nor in the other part."""
    order = np.random.default_rng(0).permutation(len(rows.texts))
    size = min(HELD_OUT, len(order) // 5)
    parts = {"test": order[:size], "dev": order[size : 2 * size]}
    known = {rows.texts[place] for place in order[: 2 * size]}
    rest = np.array([place for place in order if rows.texts[place] not in known])
    return rows.at(np.sort(rest)), rows.at(np.sort(parts[part]))


def _encoder(folder: str | None) -> Any:
    if folder is None:
        return None
    from malmoi.inference.linear.frozen_encoder import FrozenEncoder

    return FrozenEncoder.load(Path(folder))


def _labelling(
    trainer: QuickTrainer,
    learn: Rows,
    held_out: Rows,
    labels: list[str],
    order: str,
    number: int,
    wanted: float,
    settings: ActiveSettings,
) -> list[tuple[int, float]]:
    """(labels, macro F1) of every round until it is good enough twice, or there are too many."""
    draw = np.random.default_rng(number)  # the same pool and first texts for every order
    pool = learn.at(draw.permutation(len(learn.texts))[: settings.pool])
    done = list(range(BATCH))
    while len(set(pool.targets[done])) < 2:  # a person would go on, too
        done.append(len(done))
    curve: list[tuple[int, float]] = []
    while len(done) <= settings.most_labels:
        f1, result = _score(trainer, pool.at(np.array(done)), held_out, labels)
        curve.append((len(done), f1))
        if len(curve) > 1 and min(f1, curve[-2][1]) >= wanted:
            break
        rest = np.setdiff1d(np.arange(len(pool.texts)), done)
        if not len(rest):
            break
        texts = [pool.texts[place] for place in rest]
        said = (
            np.zeros((len(rest), 0)) if order == "random" else trainer.probabilities(result, texts)
        )
        size = max(BATCH, len(done) // 20)
        chosen: list[int] = []
        while len(chosen) < min(size, len(rest)):  # an order is asked for a batch at a time
            left = np.setdiff1d(np.arange(len(rest)), chosen)
            some = ORDERS[order]([texts[place] for place in left], said[left], draw)
            chosen += left[some[:BATCH]].tolist()
        done += rest[chosen[:size]].tolist()
    return curve


def _score(
    trainer: QuickTrainer, learnt: Rows, held_out: Rows, labels: list[str]
) -> tuple[float, Any]:
    """Macro F1 on texts held out, 0 to 1, and what was fitted."""
    from malmoi.finetune.evaluation.scores import score_task

    names = [labels[target] for target in learnt.targets]
    result = trainer.fit(learnt.texts, names, label_names=labels)
    said = trainer.probabilities(result, held_out.texts)
    scores = score_task("single", held_out.targets, said, labels, None)
    return round(float(scores["macro_f1"]), 4), result


def _needed(curve: list[tuple[int, float]], wanted: float) -> int | None:
    """The labels of the first of two rounds in a row that are good enough; None: there are none."""
    for (labels, f1), (_, then) in pairwise(curve):
        if min(f1, then) >= wanted:
            return labels
    return None


def _show(rows: list[dict[str, Any]]) -> None:
    for task in dict.fromkeys(row["task"] for row in rows):
        print(task)
        for order in dict.fromkeys(row["order"] for row in rows if row["task"] == task):
            mine = [row for row in rows if (row["task"], row["order"]) == (task, order)]
            needed = [row["needed"] for row in mine if row["needed"] is not None]
            spread = f" ± {statistics.stdev(needed):.0f}" if len(needed) > 1 else ""
            mean = f"{statistics.mean(needed):.0f}{spread}" if needed else "none"
            print(
                f"  {order:20} {mean} labels for F1 {mine[0]['wanted_f1']:.3f} "
                f"({len(needed)} of {len(mine)} draws got there)"
            )


def _plot(rows: list[dict[str, Any]], path: Path) -> None:
    if not rows:
        return
    if importlib.util.find_spec("matplotlib") is None:
        print(f"no {path.name}: matplotlib is not installed (pip install -e '.[plots]')")
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    tasks = list(dict.fromkeys(row["task"] for row in rows))
    figure, axes = pyplot.subplots(
        1, len(tasks), figsize=(4 * len(tasks), 3.6), squeeze=False, layout="constrained"
    )
    styles = ("-", "--", ":", "-.")
    for axis, task in zip(axes[0], tasks, strict=True):
        mine = [row for row in rows if row["task"] == task]
        for place, order in enumerate(dict.fromkeys(row["order"] for row in mine)):
            curves = [dict(map(tuple, row["curve"])) for row in mine if row["order"] == order]
            # As far as all draws went.
            shared = sorted(set.intersection(*(set(curve) for curve in curves)))
            means = [statistics.mean(curve[labels] for curve in curves) for labels in shared]
            axis.plot(shared, means, styles[place % len(styles)], label=order)
        axis.axhline(mine[0]["wanted_f1"], color="0.5", linewidth=0.8)
        axis.set(title=task, xlabel="labelled texts", ylabel="macro F1")
        axis.grid(alpha=0.3)
    axes[0][0].legend(fontsize=7)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    about = "Labels needed for 90% of the F1 of all: the app's order, random, plain uncertainty."
    sys.exit(run_command(ActiveSettings, main, about))
