"""What benchmarks/quality/score.py measured, as the cards of the released checkpoints say it."""

import statistics
import textwrap
from pathlib import Path
from typing import Any

from finetune.training.encoders import shape_of
from malmoi.errors import InputError
from malmoi.files import file_sha256
from release.check import read_json

QUALITY = Path(__file__).parents[1] / "benchmarks" / "results" / "quality.json"
TASKS = {
    "nsmc": "NSMC, rebuilt split: film reviews, 2 classes",
    "three": "film reviews, 3 classes from the rating, learnt from 180,000",
    "three-all": "film reviews, 3 classes from the rating, learnt from all 615,160",
    "hate": "Korean hate speech (its dev file)",
    "kote": "KOTE, 44 emotions (trained on its val file)",
    "korsts": "KorSTS, similarity of sentences",
    "questions": "question pairs",
    "memos": "this project's memos, 5 folds",
    "written": "this project's written reviews, 5 folds",
}
METRICS = {"macro_f1": "macro F1", "accuracy": "accuracy", "spearman": "Spearman"}
# The metric of a task is accuracy or Spearman where these say so.
METRIC_OF = {"nsmc": "accuracy", "questions": "accuracy", "korsts": "spearman"}
# Texts that may change, and their tasks: figures of others than today's do not count.
OWN_TEXTS = {
    "memos": Path(__file__).parents[1] / "corpora" / "memos" / "memos.csv",
    "written": Path(__file__).parents[1] / "corpora" / "reviews" / "reviews.csv",
}
# What benchmarks/quality/score.py calls it.
LINEAR = "characters, linear SVM"
# Figures that others published, in percent: parameters, then as PUBLISHED_TASKS. Of README.md of
# tunib-ai/tunib-electra, of DistilKoBERT that of Beomi/KcELECTRA; both read 2026-11-22.
PUBLISHED_TASKS = {
    "nsmc": "NSMC, accuracy",
    "korsts": "KorSTS, Spearman",
    "questions": "question pairs, accuracy",
    "hate": "hate speech (dev), F1",
}
PUBLISHED = {
    "TUNiB-Electra-ko-small": ("14M", 89.56, 78.76, 94.98, 64.50),
    "KoELECTRA-small-v3": ("14M", 89.36, 80.79, 94.85, 63.07),
    "DistilKoBERT": (None, 88.41, 73.21, 92.48, None),
    "KoBERT": ("90M", 89.63, 79.64, 93.93, 66.21),
    "KoELECTRA-base-v3": ("110M", 90.63, 85.53, 95.25, 67.61),
    "KcELECTRA-base": ("124M", 91.71, 82.65, 95.78, 74.49),
}
QUALITY_NOTE = """Every figure is `benchmarks/quality/score.py`'s: the test file, or where there
is none five folds, scored once for each seed of fine-tuning, save where another look or
another benchmark is named below; the encoder is one and the same. Its fine-tuning ran on an Intel
Xeon with AMX in bf16, that of random weights on an AMD EPYC in bf16 or, film reviews and memos for
the most part, on an Intel Xeon without AMX in fp32."""
CHOSEN_NOTE = """Learning rate and epochs, where several were tried, were chosen on a part of the
training file{dev_files}."""
# Tasks chosen on a dev file.
DEV_FILES = {"korsts": "KorSTS", "questions": "question pairs"}
# The vocabulary's share: benchmarks/results/pretraining_gain_second.json.
RANDOM_NOTE = """No setting was searched for random weights on NSMC, on three classes from all
reviews, nor on memos; elsewhere theirs were chosen on a part of the training file. They have this
shape, but cut texts by the vocabulary, as large, of the encoder released before; on 20,000 training
reviews that one and one that differs from today's in 7 emoji were not told apart (81.04 ± 0.29 and
80.88 ± 0.21)."""
# Settings in the two columns that differ: a part of the gap is fine-tuning's.
UNEVEN_NOTE = """Random weights were fine-tuned otherwise than this encoder, and perhaps worse, on
{tasks}."""
# Of rows of part "test, first look".
AGAIN_NOTE = """Some test files were scored a second time, after a wider choice on a part of the
training file; the means of the first time: {scores}."""
# Of tasks without rows of part "dev": docs/log has the pilots.
FIXED_NOTE = """Those of {tasks} were fixed beforehand, by pilots on training reviews
(`docs/log`)."""
FIXED_BY_PILOTS = {"nsmc": "NSMC", "three-all": "three classes from all reviews"}
# There is no text of them that no choice has seen.
OWN_NOTE = """Those of the project's own texts were chosen on other folds of the same texts, so that
these figures may be a little too high."""
# Why the last column is not what its head says, or not a fair rival.
KORSTS_NOTE = """Of KorSTS the last column is no SVM but the cosine of both sentences' character
n-grams, with nothing trained."""
KOTE_NOTE = """Thresholds of KOTE's labels are chosen on training texts, those of the SVM out of
fold."""
CP949_NOTE = """Cleaning undoes NFD. CP949 says nothing here: none of these texts holds a character
that it lacks."""
SELF_TRAINING = "self_training.json"
# What tells students apart that must not come into one mean.
SELF_TRAINED_BY = ("teachers", "epochs", "batch_size", "learning_rate")
SELF_TRAINING_NOTE = """The row with self-training is `benchmarks/quality/self_training.py`'s
(Intel Xeon with AMX, bf16): teachers that know the training labels, {teachers}, say how likely each
of {unlabelled:,} other reviews is to be positive, and this encoder learns from that and from the
labels; one such student a seed, each scored once; {dev_size:,} labelled reviews were kept out to
choose by. What the unlabelled reviews alone bring is not shown: a student also takes more steps.
Nobody looked at those reviews' ratings, and none is a review of the test file.{alike}"""
# Counted 2026-11-25, both sides cleaned.
ALIKE_NOTE = {
    400_000: """ But 365 of the 50,000 test texts, nearly all under 10 characters, are worded like
one of them."""
}
VOCABULARIES = "quality_vocabularies.json"
VOCABULARIES_NOTE = """What the vocabulary does to that: the same network, recipe and number of
tokens with another (fine-tuned for one epoch, one seed); malmoi-small's is here that of the encoder
released before."""
PUBLISHED_NOTE = """Sources: README of
[tunib-ai/tunib-electra](https://github.com/tunib-ai/tunib-electra); of DistilKoBERT that of
[Beomi/KcELECTRA](https://github.com/Beomi/KcELECTRA). They compare only roughly: NSMC is a rebuilt
split here (same recipe and sizes, another draw: within about 0.15 points), and many published
figures are the best of several looks at the test file, where ours are means of single ones. KOTE
has no published figure with our split, nor have the three classes."""


def linear_on(task: str) -> float | None:
    """Macro F1 of the linear classifier in five folds, as a fraction; None if not measured."""
    found = _scores_of(_rows(LINEAR), task)
    return statistics.mean(found) / 100 if found else None


def weights_sha256(encoder: Path) -> str:
    """SHA-256 of the weights in an encoder's folder.

    Raises:
        InputError: there are none.
    """
    path = encoder / "model.safetensors"
    if not path.is_file():
        raise InputError(f"expected an encoder's weights in {path}, found none; name its folder")
    return file_sha256(path)


def _rows(encoder: str, part: str = "test", **identity: str) -> list[dict[str, Any]]:
    """The rows of benchmarks/quality/score.py about an encoder of that name.

    Args:
        identity: its `weights_sha256`, or of random weights the `shape`; nothing of linear models.
    """
    if not QUALITY.is_file():
        return []
    key = {"encoder": encoder, "part": part}
    texts = {task: file_sha256(path) for task, path in OWN_TEXTS.items()}
    return [
        run
        for run in read_json(QUALITY)["runs"]
        if key.items() <= run.items()
        and all(run.get(name) == identity.get(name) for name in ("weights_sha256", "shape"))
        and run.get("texts_sha256") == texts.get(run["task"])
    ]


def _scores_of(rows: list[dict[str, Any]], task: str) -> list[float]:
    metric = METRIC_OF.get(task, "macro_f1")
    return [row[metric] for row in rows if row["task"] == task]


def quality_table(encoder: Path, size: str) -> str:
    """What `benchmarks.quality.score` found of this encoder, random weights and linear models.

    Args:
        encoder: its folder; rows of other weights that lay in a folder of that name do not count.
        size: how many parameters it has.
    """
    identities = {
        encoder.name: {"weights_sha256": weights_sha256(encoder)},
        f"{encoder.name}, random weights": {"shape": shape_of(encoder)},
    }
    own, random = (_rows(name, **identity) for name, identity in identities.items())
    others = (random, _rows(LINEAR))
    lines = {}
    for task, about in TASKS.items():
        cells = [_cell(_scores_of(rows, task)) for rows in (own, *others)]
        if cells[0]:
            metric = METRICS[METRIC_OF.get(task, "macro_f1")]
            lines[task] = f"| {about} | {metric} | {' | '.join(cells)} |"
    if not lines:
        return "Not measured yet."
    taught, taught_note = _self_training(identities[encoder.name])
    if "nsmc" in lines and taught:
        lines["nsmc"] += f"\n{taught}"
    devs = _rows(encoder.name, "dev", **identities[encoder.name])
    chosen = {row["task"] for row in devs}
    on_file = {row["task"] for row in devs if row.get("dev_file")}
    files = " and ".join(name for task, name in DEV_FILES.items() if task in on_file)
    fixed = [name for task, name in FIXED_BY_PILOTS.items() if task in lines.keys() - chosen]
    dev_files = f", of {files} on the dev file" if files else ""
    notes = [QUALITY_NOTE, CHOSEN_NOTE.format(dev_files=dev_files)]
    if fixed:
        notes.append(FIXED_NOTE.format(tasks=" and of ".join(fixed)))
    notes += [OWN_NOTE] if OWN_TEXTS.keys() & lines.keys() else []
    notes += [RANDOM_NOTE] if others[0] else []
    notes += _second_thoughts(identities)
    notes += [taught_note] if "nsmc" in lines and taught else []
    notes += [KORSTS_NOTE] if "korsts" in lines else []
    notes += [KOTE_NOTE] if "kote" in lines else []
    head = "| task | score (seeds) | this encoder | random weights | characters, linear SVM |"
    blocks = [
        "\n".join([head, "| --- | --- | --- | --- | --- |", *lines.values()]),
        paragraph(*notes),
        _robustness(own),
        _published_table(own, size),
    ]
    return "\n\n".join(block for block in blocks if block)


def _second_thoughts(identities: dict[str, dict[str, str]]) -> list[str]:
    """What readers should know of how fairly rows compare, from the rows themselves.

    Args:
        identities: of the encoder and of random weights, by their names in the rows.
    """

    def settings_of(rows: list[dict[str, Any]], task: str) -> set[str]:
        return {
            f"{row['epochs']} epochs at {row['learning_rate']:g}"
            for row in rows
            if row["task"] == task and "epochs" in row
        }

    def tried_on(rows: list[dict[str, Any]], task: str) -> set[tuple[str, bool]]:
        return {
            (how, bool(row.get("dev_file")))
            for row in rows
            if row["task"] == task
            for how in settings_of([row], task)
        }

    tests, devs, firsts = (
        [_rows(name, part, **identity) for name, identity in identities.items()]
        for part in ("test", "dev", "test, first look")
    )
    uneven, first = [], []
    for task in TASKS:
        ours, theirs = (settings_of(rows, task) for rows in tests)
        # Each with the best of the same settings is even, whichever that was, if by the same texts.
        tried, tried_too = (tried_on(rows, task) for rows in devs)
        if ours and theirs and ours != theirs and not (tried and tried <= tried_too):
            uneven.append(f"{task} ({', '.join(sorted(ours))}, they {', '.join(sorted(theirs))})")
        for rows, name in zip(firsts, ("", "random weights "), strict=True):
            if scores := _scores_of(rows, task):
                how = ", ".join(sorted(settings_of(rows, task)))
                first.append(f"{task} {name}{_cell(scores)} with {how}")
    notes = [UNEVEN_NOTE.format(tasks=", ".join(uneven))] if uneven else []
    return notes + ([AGAIN_NOTE.format(scores=", ".join(first))] if first else [])


def _self_training(identity: dict[str, str]) -> tuple[str, str]:
    """A row of the table about students of this encoder on NSMC, and its note; empty if none.

    Raises:
        InputError: students of several settings were scored.
    """
    path = QUALITY.with_name(SELF_TRAINING)
    found = read_json(path) if path.is_file() else {"runs": []}
    rows = [row for row in found["runs"] if identity.items() <= row.items()]
    tests = [row for row in rows if row.get("part") == "test"]
    if not tests:
        return "", ""
    settings = {tuple(row[name] for name in SELF_TRAINED_BY) for row in tests}
    if len(settings) > 1:
        raise InputError(
            f"{path}: expected students of one setting on the test file, found {len(settings)} "
            f"({', '.join(SELF_TRAINED_BY)}); keep others in another file by --results"
        )
    setting = found["setting"]
    unlabelled = setting["unlabelled"]
    encoders = len(tests[0]["teachers"].split(","))
    scores = _cell([row["accuracy"] for row in tests])
    task = f"NSMC, with self-training on {unlabelled:,} unlabelled reviews"
    note = SELF_TRAINING_NOTE.format(
        teachers=f"{encoders} fine-tuned encoders and logistic regression over character n-grams",
        unlabelled=unlabelled,
        dev_size=setting["dev_size"],
        alike=ALIKE_NOTE.get(unlabelled, ""),
    )
    return f"| {task} | accuracy | {scores} | | |", note


def _cell(scores: list[float]) -> str:
    """Mean, spread and number of seeds; empty if not measured."""
    if not scores:
        return ""
    spread = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
    return f"{statistics.mean(scores):.2f}{spread} ({len(scores)})"


def _robustness(rows: list[dict[str, Any]]) -> str:
    """What spoiling the texts of NSMC costs, where it was measured."""
    spoilt = [row["spoilt"] for row in rows if row["task"] == "nsmc" and "spoilt" in row]
    if not spoilt:
        return ""
    before, changes = _changes(spoilt)
    spoiling = paragraph(
        "Accuracy on spoilt texts against the same as written, in points (the first 10,000 of "
        f"NSMC's test file, as written {before:.2f}; means over {len(spoilt)} seeds): {changes}.",
        CP949_NOTE,
    )
    vocabularies = QUALITY.with_name(VOCABULARIES)
    if not vocabularies.is_file():
        return spoiling
    runs = read_json(vocabularies)["runs"]
    each = [(run["encoder"], *_changes([run["spoilt"]])) for run in runs]
    others = "; ".join(f"{name}: as written {score:.2f}, {found}" for name, score, found in each)
    return f"{spoiling}\n\n{paragraph(VOCABULARIES_NOTE, f'{others}.')}"


def _changes(spoilt: list[dict[str, float]]) -> tuple[float, str]:
    """Mean score of the texts as written, and what each way of spoiling them changes."""
    means = {name: statistics.mean(one[name] for one in spoilt) for name in spoilt[0]}
    before = means.pop("as written")
    # Adding 0 makes 0 of the -0 that rounding may leave.
    changes = [f"{name} {round(after - before, 2) + 0.0:.2f}" for name, after in means.items()]
    return before, ", ".join(changes)


def _published_table(rows: list[dict[str, Any]], size: str) -> str:
    """This encoder beside published ones, where one of their tasks was measured."""
    own = [_scores_of(rows, task) for task in PUBLISHED_TASKS]
    if not any(own):
        return ""
    table = {"this encoder": (size, *(statistics.mean(one) if one else None for one in own))}
    lines = [
        f"| {name} | {parameters or ''} | "
        + " | ".join("" if score is None else f"{score:.2f}" for score in scores)
        + " |"
        for name, (parameters, *scores) in (table | PUBLISHED).items()
    ]
    head = f"| published | parameters | {' | '.join(PUBLISHED_TASKS.values())} |"
    rule = "| --- " * (2 + len(PUBLISHED_TASKS)) + "|"
    return "\n".join([head, rule, *lines]) + f"\n\n{paragraph(PUBLISHED_NOTE)}"


def paragraph(*sentences: str) -> str:
    text = " ".join(" ".join(sentences).split())
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)
