"""Draw docs/pictures/encoders.png: what encoders score, by the time that a text takes them.

    python -m lab.benchmarks.quality.encoders_picture

Scores of ours are those of quality.json, those of others are published ones (docs/scores.md).
"""

import json
import statistics
from pathlib import Path

import matplotlib
from matplotlib import pyplot

from lab.benchmarks.quality.downstream import ROOT
from lab.benchmarks.quality.score import RESULTS

PICTURE = ROOT / "docs" / "pictures" / "encoders.png"
# Multiplications of a text's 20 tokens without embeddings, in millions, from each configuration:
# layers x (4 H^2 + 2 H I) x 20.
OPERATIONS = {
    "malmoi-small": 4 * (4 * 256**2 + 2 * 256 * 1024) * 20 / 1e6,
    "malmoi-medium": 12 * (4 * 256**2 + 2 * 256 * 1024) * 20 / 1e6,
    "malmoi-vectors": 12 * (4 * 384**2 + 2 * 384 * 1536) * 20 / 1e6,
    "KoELECTRA-small-v3": 12 * (4 * 256**2 + 2 * 256 * 1024) * 20 / 1e6,
    "KcELECTRA-base": 12 * (4 * 768**2 + 2 * 768 * 3072) * 20 / 1e6,
}
OTHERS = {
    # Ours: of the runs with a linear part, the encoder alone.
    "nsmc": {"malmoi-medium": 89.96, "KoELECTRA-small-v3": 89.36, "KcELECTRA-base": 91.71},
    "questions": {"KoELECTRA-small-v3": 94.85, "KcELECTRA-base": 95.78},
    "korsts": {"KoELECTRA-small-v3": 80.79, "KcELECTRA-base": 82.65},
}
TITLES = {
    "nsmc": ("film reviews (NSMC)", "accuracy"),
    "questions": ("question pairs", "accuracy"),
    "korsts": ("KorSTS", "spearman"),
}


def best_of(task: str, measure: str) -> dict[str, float]:
    """The best setting of each of our encoders, its mean over seeds; and the published ones."""
    found: dict[str, dict[tuple[object, ...], list[float]]] = {}
    for run in json.loads(RESULTS.read_text(encoding="utf-8"))["runs"]:
        if run["task"] == task and run["part"] == "test" and run["encoder"] in OPERATIONS:
            setting = tuple(run.get(key) for key in ("weights_sha256", "epochs", "learning_rate"))
            scores = found.setdefault(run["encoder"], {}).setdefault(setting, [])
            scores.append(run[measure])
    ours = {name: max(map(statistics.mean, by.values())) for name, by in found.items()}
    return ours | OTHERS[task]


def draw(path: Path = PICTURE) -> None:
    """Write the picture."""
    matplotlib.use("Agg")
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for axis, (task, (title, measure)) in zip(axes, TITLES.items(), strict=True):
        for name, score in best_of(task, measure).items():
            is_ours = name.startswith("malmoi")
            axis.scatter(OPERATIONS[name], score, color="#1f6f5c" if is_ours else "#8a8f8d")
            axis.annotate(
                name,
                (OPERATIONS[name], score),
                (0, 6),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
        axis.set(xscale="log", title=title, xlabel="million operations a text", ylabel=measure)
        axis.margins(x=0.25, y=0.15)
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    draw()
