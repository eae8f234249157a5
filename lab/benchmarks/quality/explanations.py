"""Do the words that `explain` names carry the decision?

    python -m lab.benchmarks.quality.explanations --data FOLDER

Of rated film reviews that the classifier has not learnt, those of at least `FEWEST_WORDS` words are
drawn, others with each seed. The words that count most for the label are left out, and as many by
chance: one word, and a fifth of the words together. Reported is how much lower the label's
probability and log-odds then are, mean and standard deviation over seeds. (The words are not chosen
by leaving out several together, so a fifth is the honest figure; for one word the first way of
naming is best by its making.)

Words are named in two ways: `explain`, which leaves out one at a time, and gradient times input,
summed over the pieces of a word (Denil et al. 2014), of the log-odds.
"""

import json
import math
import random
import re
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification

from lab.benchmarks.data import RATED_REVIEWS, DataSettings
from lab.benchmarks.encoder_alone import encoder_alone
from lab.benchmarks.quality.tasks import rated_reviews
from lab.benchmarks.result_files import write_result
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier
from malmoi.inference.learnt_texts import read_learnt, text_keys
from malmoi.model_folders import local_source
from malmoi.tokenizer_folders import load_tokenizer

RESULTS = Path(__file__).parents[1] / "results" / "explanations.json"
FEWEST_WORDS = 5
SHARE = 0.2
CHANCE = "by chance"
_words = re.compile(r"\S+").finditer
# The words of a clean text with their weights, in their order.
Weigh = Callable[[str, str], Sequence[float]]


@dataclass(kw_only=True)
class ExplanationSettings(DataSettings):
    """What is explained, how often."""

    model: str = "malmoi-small-reviews"
    """Classifier: name, folder or Hub id."""
    engine: str = "onnx-fp32"
    """What computes."""
    texts: int = 500
    """Reviews of each seed."""
    seeds: int = 3
    """Draws of reviews, and of words by chance."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: ExplanationSettings) -> None:
    """Draw, explain, leave out, write the results."""
    if settings.texts < 1 or settings.seeds < 2:
        raise InputError(
            "expected --texts of at least 1 and --seeds of at least 2, for a spread, found "
            f"{settings.texts} and {settings.seeds}"
        )
    RATED_REVIEWS.find(settings.folder)
    texts = _unlearnt(settings)
    model = encoder_alone(settings.model)
    classifier = Classifier.load(model, settings.engine)
    gradient = _Gradient(str(model))
    ways: dict[str, Weigh] = {
        "explain": lambda text, label: [w.weight for w in classifier.explain(text).words],
        "gradient x input": gradient.weights,
    }
    rows: list[dict[str, Any]] = []
    for seed in range(settings.seeds):
        draw = random.Random(seed)
        chosen = draw.sample(texts, min(settings.texts, len(texts)))
        rows += _rows(classifier, ways, chosen, draw, seed)
        print(f"seed {seed}: {len(chosen)} reviews", flush=True)
    result = {
        "model": settings.model,
        "engine": classifier.engine,
        "reviews_of_a_seed": min(settings.texts, len(texts)),
        "seeds": settings.seeds,
        "fewest_words": FEWEST_WORDS,
        "share": SHARE,
        "summary": _summary(rows),
        "rows": rows,
    }
    write_result(settings.output, result)
    print(json.dumps({k: v for k, v in result.items() if k != "rows"}, indent=1))


def _unlearnt(settings: ExplanationSettings) -> list[str]:
    """Reviews that are long enough and that the classifier has not learnt, each once."""
    texts = list(dict.fromkeys(rated_reviews(settings.folder)[0]))
    long = [text for text in texts if len(text.split()) >= FEWEST_WORDS]
    learnt = read_learnt(Path(local_source(settings.model)))
    known = set() if learnt is None else set(learnt.tolist())
    keys = text_keys(long).tolist()
    return [text for text, key in zip(long, keys, strict=True) if key not in known]


class _Gradient:
    """Gradient times input of a stock model."""

    def __init__(self, folder: str) -> None:
        self._model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
        self._tokenizer = load_tokenizer(folder)
        self._ids = {name: place for place, name in self._model.config.id2label.items()}

    def weights(self, text: str, label: str) -> list[float]:
        """The weight of every word of a text for a label."""
        encoded = self._tokenizer(text, truncation=True, return_offsets_mapping=True)
        embedding = self._model.get_input_embeddings()
        inputs = embedding(torch.tensor([encoded["input_ids"]])).detach().requires_grad_()
        logits = self._model(inputs_embeds=inputs).logits[0]
        place = self._ids[label]
        others = torch.cat([logits[:place], logits[place + 1 :]])
        (gradient,) = torch.autograd.grad(logits[place] - others.logsumexp(0), inputs)
        pieces = (gradient * inputs).sum(-1)[0].tolist()
        spans = [word.span() for word in _words(text)]
        found = [0.0] * len(spans)
        for (start, end), weight in zip(encoded["offset_mapping"], pieces, strict=True):
            for number, (first, last) in enumerate(spans):
                if end > start and first <= start < last:
                    found[number] += weight
        return found


def _rows(
    classifier: Classifier,
    ways: dict[str, Weigh],
    texts: Sequence[str],
    draw: random.Random,
    seed: int,
) -> list[dict[str, Any]]:
    """How much the label loses on average, by way and number of words, in one seed."""
    labels = [found.label for found in classifier.predict(texts)]
    order: dict[str, list[list[int]]] = {name: [] for name in (*ways, CHANCE)}
    for text, label in zip(texts, labels, strict=True):
        for name, weigh in ways.items():
            weights = weigh(text, label)
            order[name].append(sorted(range(len(weights)), key=lambda n: -weights[n]))
        count = len(text.split())
        order[CHANCE].append(draw.sample(range(count), count))
    rows = []
    for share in (0.0, SHARE):
        for name, ranked in order.items():
            left = [
                _without(text, ranks[: max(1, round(share * len(text.split())))])
                for text, ranks in zip(texts, ranked, strict=True)
            ]
            rows.append(
                {"seed": seed, "words": "one" if share == 0 else "a fifth", "named": name}
                | _losses(classifier, texts, left, labels)
            )
    return rows


def _without(text: str, words: Sequence[int]) -> str:
    return " ".join(word for place, word in enumerate(text.split()) if place not in set(words))


def _losses(
    classifier: Classifier, texts: Sequence[str], left: Sequence[str], labels: Sequence[str]
) -> dict[str, float]:
    before, after = classifier.predict(texts), classifier.predict(left)
    pairs = [
        (old.probabilities[label], new.probabilities[label])
        for old, new, label in zip(before, after, labels, strict=True)
    ]
    return {
        "probability": round(statistics.mean(old - new for old, new in pairs), 4),
        "log_odds": round(
            statistics.mean(_log_odds(old) - _log_odds(new) for old, new in pairs), 4
        ),
        "other_label": round(
            statistics.mean(n.label != label for n, label in zip(after, labels, strict=True)), 4
        ),
    }


def _log_odds(probability: float) -> float:
    kept = min(max(probability, 1e-6), 1 - 1e-6)
    return math.log(kept / (1 - kept))


def _summary(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Words, way, figure: mean and standard deviation over seeds."""
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for row in rows:
        same = [r for r in rows if (r["words"], r["named"]) == (row["words"], row["named"])]
        found.setdefault(row["words"], {})[row["named"]] = {
            name: [
                round(statistics.mean(r[name] for r in same), 4),
                round(statistics.stdev(r[name] for r in same), 4),
            ]
            for name in ("probability", "log_odds", "other_label")
        }
    return found


if __name__ == "__main__":
    sys.exit(run_command(ExplanationSettings, main, __doc__))
