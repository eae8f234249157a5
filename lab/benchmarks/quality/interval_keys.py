"""Which keys give the narrowest valid intervals of shares: a tenth by chance, all, or drawn?

    python -m lab.benchmarks.quality.interval_keys --data FOLDER

Somebody labels 134 of 2,000 texts whose labels are known here, and the classifier of the app learns
every 20 labels. Ways:

- `tenth`: a tenth is drawn by chance, the others are those that the model is least sure of; the
  shares are those of `malmoi.analysis`, from the tenth.
- `drawn`: active statistical inference (Zrnic & Candès 2024), in its sequential form. Each text is
  drawn with a known probability, half of it even and half by how unsure the model is, and each
  label counts by one over that.
- `chance`: all are drawn by chance, and all count; the shares as in `tenth`. So the app hands out
  the first 200.

Of each way: how often the 95% intervals of the labels hold the truth, half their width, half the
width from the same labels of people alone, and how right the classifier is in the end on the texts
that nobody labelled.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks.data import DataSettings
from lab.benchmarks.quality.tasks import TASKS
from malmoi.analysis.shares import Z_95, Labelling, counted, shares
from malmoi.command_line import run_command
from malmoi.inference.labelling.ranking import ranked
from malmoi.inference.linear.quick import QuickTrainer
from malmoi.progress import shown_progress

WAYS = ("tenth", "drawn", "chance")
ROUND = 20
# Of the probability of a draw, the part that is the same for all texts.
_EVEN = 0.5


@dataclass(kw_only=True)
class KeysSettings(DataSettings):
    """Which task, how many texts, keys and draws."""

    tasks: str = "nsmc,written,hate"
    """Comma-separated tasks of one label a text."""
    texts: int = 2_000
    """Of the project."""
    keys: int = 134
    """Labels that somebody gives."""
    draws: int = 20
    """How often."""
    ways: str = ",".join(WAYS)
    """Comma-separated."""


def main(settings: KeysSettings) -> None:
    """Measure each way, and print a table."""
    print("task      way      held   half   people alone   least held   accuracy of the model")
    for task in settings.tasks.split(","):
        words, truth = _project(task, settings.folder, settings.texts)
        trainer = QuickTrainer()
        trainer.read(words)
        with shown_progress("draws") as progress:
            for way in settings.ways.split(","):
                runs = []
                for seed in range(settings.draws):
                    runs.append(_label(way, trainer, words, truth, settings.keys, seed))
                    progress(f"{task} {way}", seed + 1, settings.draws)
                held = np.mean([one[0] for one in runs], axis=0)
                half = np.mean([one[1] for one in runs])
                alone = np.mean([one[2] for one in runs])
                right = np.mean([one[3] for one in runs])
                print(
                    f"{task:<9} {way:<8} {held.mean():5.1%}  {half:5.1%}  {alone:5.1%}"
                    f"          {held.min():5.1%}        {right:5.1%}",
                    flush=True,
                )


def _project(task: str, folder: Path, count: int) -> tuple[list[str], np.ndarray]:
    """Texts and their labels, int64 [N]."""
    rows = TASKS[task].train(folder)
    chosen = np.random.default_rng(0).permutation(len(rows.texts))[:count].tolist()
    names = sorted({str(rows.targets[place]) for place in chosen})
    return [rows.texts[place] for place in chosen], np.array(
        [names.index(str(rows.targets[place])) for place in chosen]
    )


def _label(
    way: str, trainer: QuickTrainer, words: list[str], truth: np.ndarray, keys: int, seed: int
) -> tuple[np.ndarray, float, float, float]:
    """Which intervals hold the truth, bool [K]; half their width; that of the labels of people
    alone, NaN where they are not a random sample; how right the classifier is."""
    rng = np.random.default_rng(seed)
    labels, texts = int(truth.max()) + 1, len(truth)
    given = np.eye(labels)[truth]
    left, said = np.ones(texts, dtype=bool), np.full((texts, labels), 1 / labels)
    done: list[int] = []
    by_chance: list[int] = []
    steps: list[np.ndarray] = []
    fitted: Any = None
    while len(done) < keys:
        for _ in range(min(ROUND, keys - len(done))):
            places = np.flatnonzero(left)
            if way == "drawn":
                unsure = np.sqrt(1 - (said[places] ** 2).sum(axis=1)) + 1e-6
                chances = _EVEN / len(places) + (1 - _EVEN) * unsure / unsure.sum()
                one = int(rng.choice(len(places), p=chances))
                place = int(places[one])
                known = given[done].sum(axis=0) + said[places].sum(axis=0)
                steps.append((known + (given[place] - said[place]) / chances[one]) / texts)
            elif fitted is None or way == "chance" or rng.random() < 0.1:
                place = int(rng.choice(places))
                by_chance.append(place)
            else:
                place = int(places[ranked(said[places])[0]])
            done.append(place)
            left[place] = False
        names = [str(truth[place]) for place in done]
        learnt = [words[place] for place in done]
        known_labels = sorted(set(names))
        fitted = trainer.fit(learnt, names, label_names=known_labels, seed=seed)
        said = np.zeros((texts, labels))
        columns = [int(name) for name in known_labels]
        said[:, columns] = trainer.probabilities(fitted, words)
        # Of what it has learnt, what it says out of fold.
        said[np.ix_(done, columns)] = fitted.probabilities
    true = given.mean(axis=0)
    if way == "drawn":
        share, spread = np.mean(steps, axis=0), np.std(steps, axis=0, ddof=1)
        half = Z_95 * spread / np.sqrt(len(steps))
        low, high = np.clip(share - half, 0, 1), np.clip(share + half, 0, 1)
        alone = float("nan")
    else:
        drawn = np.zeros(texts, dtype=bool)
        drawn[by_chance] = True
        says = np.eye(labels, dtype=bool)[said.argmax(axis=1)]
        whole = np.zeros(texts, dtype=np.int64)
        labelling = Labelling(said=says, given=given.astype(bool), drawn=drawn)
        found = shares(counted(labelling, whole, 1))
        low, high = found.low[0], found.high[0]
        people = shares(counted(replace(labelling, said=np.zeros_like(says)), whole, 1))
        alone = float((people.high[0] - people.low[0]).mean() / 2)
    right = float((said[left].argmax(axis=1) == truth[left]).mean())
    return (low <= true) & (true <= high), float((high - low).mean() / 2), alone, right


if __name__ == "__main__":
    sys.exit(run_command(KeysSettings, main, __doc__ or ""))
