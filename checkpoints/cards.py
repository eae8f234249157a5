"""The cards of the released checkpoints, filled in from their own records and measured results."""

import json
import statistics
import textwrap
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from corpora.errors import InputError
from corpora.mirror import file_sha256

# Rated reviews of e9t/nsmc's raw release, without those that the test files were drawn from.
REVIEWS = "reviews_rated.tsv.gz"
# Lowest and highest rating of a label.
RATINGS = {"부정": (1, 4), "중립": (5, 8), "긍정": (9, 10)}
TEMPLATES = Path(__file__).parent / "card_templates"
QUALITY = Path(__file__).parents[1] / "benchmarks" / "results" / "quality.json"
# By the beginning of a file's name.
LICENCES = {
    REVIEWS: ("film reviews (e9t/nsmc)", "CC0 1.0"),
    "ChatbotData.csv": ("everyday sentences (songys/Chatbot_data)", "MIT"),
    "petitions_": ("petitions to the government (lovit/petitions_archive)", "public record, KOGL"),
}
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
# What benchmarks/quality.py calls it.
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
# Settings of the run that the encoder's card names.
SETTINGS = ("seed", "mask_fraction", "unigram_fraction", "bag_weight")
# A laptop's two cores under load, to give the energy an order of magnitude.
WATTS = 30
STOCK = "From the released encoder; a stock `ElectraForSequenceClassification`."
# The clean corpus of which NSMC and its like are true, as run.json has it.
CORPUS_SHA256 = "3af2413203c55454cb258bc62dd9a85f1026e402af0f4fc44983f7b2f3bda8e4"
# The shares are those of the raw release's ratings 1-4 and 9-10 that are left in REVIEWS, for the
# official file is a draw from it; equal texts were counted, both sides cleaned (2026-11-22).
NSMC = """Do not score it on NSMC's official `ratings_test.txt`, nor compare such a figure: it has
read most of it. That file and the film reviews here come from one release, from which only the test
files were taken out that this project drew anew. By arithmetic, about 70% of the official file's
negative and 90% of its positive reviews (of 10 characters or more) were read in pre-training. Of
the project's own test files (NSMC, rebuilt split; three classes) no review was; 57 of 50,000 and 8
of 15,000 texts in them, such as `10점 만점에 10점!!`, equal another review once both are clean."""
# Counted on the clean corpus of CORPUS_SHA256.
OTHER_TESTS = """Of the other tasks' test files its corpus has 777 of the 1,400 distinct questions
of the question pairs, all from Chatbot_data, of which that task is made (576 of its 758 pairs have
one or both questions in it, 300 both); 10 of KOTE's 4,997 distinct texts, film reviews quoted
there; and none of KorSTS or of the hate speech file (counted 2026-11-22, both sides cleaned).
Labels were not read, but sentences were: the figure for question pairs is not clean."""
NSMC_OF_REVIEWS = """By arithmetic, some of its rated reviews are in NSMC's official
`ratings_test.txt`, most of which the encoder has read: do not score it on that file, nor compare
such a figure. Of this project's own test files it has seen no review, but a few of the same short
texts."""
NSMC_OF_WRITTEN = """The encoder that it began as has read most of NSMC's official
`ratings_test.txt`: do not score it on that file, nor compare such a figure."""
OTHER_NSMC = f"""Its `{REVIEWS}` was another than the project's, and nobody has looked which reviews
of NSMC's test files are in it: do not score it on any of them."""
QUALITY_NOTE = """Every figure is `benchmarks/quality.py`'s: the test file, or where there
is none five folds, scored once for each seed of fine-tuning; the encoder is one and the same."""
CHOSEN_NOTE = """Learning rate and epochs, where several were tried, were chosen on a part of the
training file."""
RANDOM_NOTE = """On hate speech more epochs were better for random weights on that part; on NSMC no
setting was searched for them."""
# Settings in the two columns that differ: a part of the gap is fine-tuning's.
UNEVEN_NOTE = """Random weights were fine-tuned otherwise than this encoder, and perhaps worse, on
{tasks}."""
# Of rows of part "test, first look".
AGAIN_NOTE = """These test files were scored a second time, after a wider choice on that part; the
means of the first time: {scores}."""
# Of tasks without rows of part "dev": docs/experiments.md has the pilots.
FIXED_NOTE = """Those of {tasks} were fixed beforehand, by pilots on training reviews
(`docs/experiments.md`)."""
FIXED_BY_PILOTS = {"nsmc": "NSMC", "three-all": "three classes from all reviews"}
# Why the last column is not what its head says, or not a fair rival.
KORSTS_NOTE = """Of KorSTS the last column is no SVM but the cosine of both sentences' character
n-grams, with nothing trained."""
KOTE_NOTE = """Thresholds of KOTE's labels are chosen on training texts, those of the SVM out of
fold."""
CP949_NOTE = """Cleaning undoes NFD. CP949 says nothing here: none of these texts holds a character
that it lacks."""
VOCABULARIES = "quality_vocabularies.json"
VOCABULARIES_NOTE = """What the vocabulary does to that: the same network, recipe and number of
tokens with another (fine-tuned for one epoch, one seed)."""
PUBLISHED_NOTE = """Sources: README of
[tunib-ai/tunib-electra](https://github.com/tunib-ai/tunib-electra); of DistilKoBERT that of
[Beomi/KcELECTRA](https://github.com/Beomi/KcELECTRA). They compare only roughly: NSMC is a rebuilt
split here (same recipe and sizes, another draw: within about 0.15 points), and many published
figures are the best of several looks at the test file, where ours are means of single ones. KOTE
has no published figure with our split, nor have the three classes."""
ABOUT = {
    "reviews": {
        "about": f"긍정, 중립 or 부정: what a review says, the app's default. {STOCK}",
        "example": "배송은 빨랐는데 향이 너무 세요",
        "data": "film reviews with ratings "
        f"({', '.join(f'{label} {low}-{high}' for label, (low, high) in RATINGS.items())}; CC0), "
        "as many of each label, and the project's own reviews (`corpora/reviews`)",
        "limits": "A rating is no label: people give 8 with a complaint and 10 with none. Some "
        "written reviews are hard on purpose (irony, mixed verdicts). So take its answers as a "
        "first guess and correct them in the app.",
    },
    "memos": {
        "about": f"꿈, 일기, 일정, 메모 or 오류: what somebody noted for themselves. {STOCK}",
        "example": "내일 세시 치과",
        "data": "the project's memos (`corpora/memos`)",
        "limits": "The memos were written for the project, not collected: people's own notes "
        "differ more, and the score above will not be reached on them.",
    },
}
# Of the classifier of reviews where it learnt from no ratings.
WRITTEN_ALONE = {
    "data": "the project's own reviews (`corpora/reviews`)",
    "limits": "The reviews were written for the project, not collected, and some are hard on "
    "purpose (irony, mixed verdicts): people's own differ. So take its answers as a first guess "
    "and correct them in the app.",
}


def encoder_card(folder: Path, classifiers: Mapping[str, Path]) -> str:
    """The README.md of a released encoder, from its run.json, corpus.json and the results so far.

    Args:
        folder: the encoder.
        classifiers: the classifiers made from it, by task.

    Raises:
        InputError: a record is missing, or not one of a release.
    """
    record = read_json(folder / "run.json")
    sources, memos = _sources(folder / "corpus.json"), classifiers["memos"]
    try:
        network, progress = record["networks"]["discriminator"], record["progress"]
        hours, millions = progress["seconds"] / 3600, network["parameters"] / 1e6
        values = _start(record["settings"]["init"]) | {
            "name": folder.name,
            "parameters": f"{millions:.1f} million",
            "layers": network["num_hidden_layers"],
            "width": network["hidden_size"],
            "entries": f"{record['vocab_size']:,}",
            "tokens": f"{progress['tokens'] / 1e6:.0f} million",
            "steps": f"{progress['step']:,}",
            "hours": f"{hours:.1f}",
            "where": _where(record, hours),
            "cost": _cost(record, classifiers),
            "reviews": REVIEWS,
            "test_files": f"{NSMC}\n\n{OTHER_TESTS}" if _is_known(record) else OTHER_NSMC,
            "sources": sources,
            "scores": quality_table(folder, f"{millions:.1f}M"),
            "generator": _generator(folder / "generator"),
            "memos": f"[{memos.name}](../{memos.name}/README.md)",
            "memo_scores": _memo_scores(memos),
            **{name: f"{record.get(name, record['settings'].get(name)):g}" for name in SETTINGS},
        }
    except (KeyError, TypeError) as error:
        raise _no_record(folder / "run.json", error) from error
    return _filled("encoder", values)


def classifier_card(folder: Path, task: str, encoder: Path) -> str:
    """The README.md of a released classifier, from its report.json; `task` is a key of ABOUT.

    Raises:
        InputError: as `encoder_card`.
    """
    report = read_json(folder / "report.json")
    try:
        mean, folds = _mean_score(report), [fold["macro_f1"] for fold in report["folds"]]
        per_label = report["data"]["per_label"]
        counts = ", ".join(f"{label} {count:,}" for label, count in per_label.items())
        scores = (
            f"Macro F1 over {len(folds)} folds: {mean:.4f} "
            f"(standard deviation {statistics.stdev(folds):.4f}); texts: {counts}."
        )
        for origin, found in report.get("by_origin", {}).items():
            scores += (
                f" {origin.capitalize()} reviews alone ({found['texts']:,}): "
                f"{found['macro_f1']:.4f}."
            )
    except (KeyError, TypeError, statistics.StatisticsError) as error:
        raise _no_record(folder / "report.json", error) from error
    values = ABOUT[task] | {"name": folder.name, "encoder": encoder.name, "scores": scores}
    if task == "reviews" and not _has_rated(report):
        values |= WRITTEN_ALONE
    values["limits"] += f" {_limits_of(task, report, encoder)}"
    values["calibration"] = _calibration(report)
    return _filled("classifier", values)


def _limits_of(task: str, report: dict[str, Any], encoder: Path) -> str:
    """What the records say of its limits."""
    if task == "memos":
        return _beside_linear("memos", "memos", _mean_score(report))
    by_origin = report.get("by_origin", {})
    read = NSMC_OF_REVIEWS if _has_rated(report) else NSMC_OF_WRITTEN
    if not _is_known(read_json(encoder / "run.json")):
        read = OTHER_NSMC
    limits = " ".join(read.split())
    if "written" not in by_origin:
        return limits
    return (
        f"{_beside_linear('written', 'written reviews', by_origin['written']['macro_f1'])} {limits}"
    )


def _has_rated(report: dict[str, Any]) -> bool:
    """Whether there are rated reviews among its texts; true of records that do not say."""
    return "rated" in report.get("by_origin", ("rated",))


def _beside_linear(task: str, texts: str, score: float) -> str:
    """The linear classifier that learnt from the same texts alone, in five folds."""
    linear = _linear_on(task)
    if linear is None:
        return f"No simpler classifier was measured on these {texts}."
    model = "A linear classifier over character n-grams that learns from these alone"
    source = "5 folds; `benchmarks/quality.py --linear`"
    if score < linear:
        return f"{model} is better on these {texts} (macro F1 {linear:.4f}, {source})."
    return f"{model} has {linear:.4f} on these {texts} ({source})."


def _calibration(report: dict[str, Any]) -> str:
    """What the temperature does to the scores, as far as the report says."""
    found = report.get("calibration")
    if found is None:
        return ""
    return (
        f": out of fold the expected calibration error falls from {found['ece_before']:.3f} to "
        f"{found['ece_after']:.3f}"
    )


def _memo_scores(memos: Path) -> str:
    """The memo classifier's score in a few words, beside a linear classifier's."""
    path = memos / "report.json"
    try:
        mean = _mean_score(read_json(path))
    except (KeyError, TypeError, statistics.StatisticsError) as error:
        raise _no_record(path, error) from error
    linear = _linear_on("memos")
    if linear is None:
        return f"macro F1 {mean:.4f}"
    verdict = "below" if mean < linear else "not below"
    return (
        f"macro F1 {mean:.4f}, {verdict} the {linear:.4f} of a linear classifier over character "
        "n-grams"
    )


def _mean_score(report: dict[str, Any]) -> float:
    return statistics.mean(fold["macro_f1"] for fold in report["folds"])


def _linear_on(task: str) -> float | None:
    """Macro F1 of the linear classifier in five folds, as a fraction; None if not measured."""
    found = _scores_of(_rows(LINEAR), task)
    return statistics.mean(found) / 100 if found else None


def _is_known(record: dict[str, Any]) -> bool:
    return record.get("corpus_sha256") == CORPUS_SHA256


def _no_record(path: Path, error: Exception) -> InputError:
    return InputError(
        f"expected the record of a release in {path}, found another ({error!r}); name the "
        "folder of a release by --output"
    )


def weights_sha256(encoder: Path) -> str:
    """SHA-256 of the weights in an encoder's folder.

    Raises:
        InputError: there are none.
    """
    path = encoder / "model.safetensors"
    if not path.is_file():
        raise InputError(f"expected an encoder's weights in {path}, found none; name its folder")
    return file_sha256(path)


def _rows(encoder: str, sha256: str | None = None, part: str = "test") -> list[dict[str, Any]]:
    """The rows of benchmarks/quality.py about an encoder of that name with those weights."""
    if not QUALITY.is_file():
        return []
    key = {"encoder": encoder, "part": part}
    texts = {task: file_sha256(path) for task, path in OWN_TEXTS.items()}
    return [
        run
        for run in read_json(QUALITY)["runs"]
        if key.items() <= run.items()
        and run.get("weights_sha256") == sha256
        and run.get("texts_sha256") == texts.get(run["task"])
    ]


def _scores_of(rows: list[dict[str, Any]], task: str) -> list[float]:
    metric = METRIC_OF.get(task, "macro_f1")
    return [row[metric] for row in rows if row["task"] == task]


def quality_table(encoder: Path, size: str) -> str:
    """What benchmarks/quality.py found of this encoder, of random weights and of linear models.

    Args:
        encoder: its folder; rows of other weights that lay in a folder of that name do not count.
        size: how many parameters it has.
    """
    sha256 = weights_sha256(encoder)
    own = _rows(encoder.name, sha256)
    others = (_rows(f"{encoder.name}, random weights"), _rows(LINEAR))
    lines = {}
    for task, about in TASKS.items():
        cells = [_cell(_scores_of(rows, task)) for rows in (own, *others)]
        if cells[0]:
            metric = METRICS[METRIC_OF.get(task, "macro_f1")]
            lines[task] = f"| {about} | {metric} | {' | '.join(cells)} |"
    if not lines:
        return "Not measured yet."
    chosen = {row["task"] for row in _rows(encoder.name, sha256, part="dev")}
    fixed = [name for task, name in FIXED_BY_PILOTS.items() if task in lines.keys() - chosen]
    notes = [QUALITY_NOTE, CHOSEN_NOTE]
    if fixed:
        notes.append(FIXED_NOTE.format(tasks=" and of ".join(fixed)))
    notes += [RANDOM_NOTE] if others[0] else []
    notes += _second_thoughts(encoder.name, sha256)
    notes += [KORSTS_NOTE] if "korsts" in lines else []
    notes += [KOTE_NOTE] if "kote" in lines else []
    head = "| task | score (seeds) | this encoder | random weights | characters, linear SVM |"
    blocks = [
        "\n".join([head, "| --- | --- | --- | --- | --- |", *lines.values()]),
        _paragraph(*notes),
        _robustness(own),
        _published_table(own, size),
    ]
    return "\n\n".join(block for block in blocks if block)


def _second_thoughts(encoder: str, sha256: str) -> list[str]:
    """What readers should know of how fairly rows compare, from the rows themselves."""

    def settings_of(rows: list[dict[str, Any]], task: str) -> set[str]:
        return {
            f"{row['epochs']} epochs at {row['learning_rate']:g}"
            for row in rows
            if row["task"] == task and "epochs" in row
        }

    whose = {encoder: sha256, f"{encoder}, random weights": None}
    tests, devs, firsts = (
        [_rows(name, weights, part) for name, weights in whose.items()]
        for part in ("test", "dev", "test, first look")
    )
    uneven, first = [], []
    for task in TASKS:
        ours, theirs = (settings_of(rows, task) for rows in tests)
        # Each with the best of the same settings is even, whichever that was.
        tried, tried_too = (settings_of(rows, task) for rows in devs)
        if ours and theirs and ours != theirs and not (tried and tried <= tried_too):
            uneven.append(f"{task} ({', '.join(ours)}, they {', '.join(theirs)})")
        for rows, name in zip(firsts, ("", "random weights "), strict=True):
            if scores := _scores_of(rows, task):
                how = ", ".join(settings_of(rows, task))
                first.append(f"{task} {name}{_cell(scores)} with {how}")
    notes = [UNEVEN_NOTE.format(tasks=", ".join(uneven))] if uneven else []
    return notes + ([AGAIN_NOTE.format(scores=", ".join(first))] if first else [])


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
    spoiling = _paragraph(
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
    return f"{spoiling}\n\n{_paragraph(VOCABULARIES_NOTE, f'{others}.')}"


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
    return "\n".join([head, rule, *lines]) + f"\n\n{_paragraph(PUBLISHED_NOTE)}"


def _paragraph(*sentences: str) -> str:
    text = " ".join(" ".join(sentences).split())
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _start(init: str) -> dict[str, str]:
    """What the encoder began as, in two places of its card."""
    if init == "skip-gram":
        start = "Word embeddings started from skip-gram vectors of the same texts."
        return {"origin": "from nothing", "start": start}
    if init == "random":
        return {"origin": "from nothing", "start": "All weights started at random."}
    name = f"`{Path(init).name}`"
    return {
        "origin": f"further from {name}",
        "start": f"It went on from {name}, with its tokenizer; what that one has read is not "
        "counted here.",
    }


def _generator(folder: Path) -> str:
    """Where the generator beside the encoder comes from, or that there is none."""
    if not folder.is_dir():
        return _paragraph(
            "No generator is released with it; `--init` begins a new one where it needs one."
        )
    if not (folder / "run.json").is_file():  # that of the encoder is its own too
        return _paragraph(
            "`generator/` was trained beside it; `--init` goes on with both by default."
        )
    record, metrics = read_json(folder / "run.json"), folder / "metrics.jsonl"
    try:
        minutes = record["progress"]["seconds"] / 60
        network = record["networks"]["generator"]
        layers, width = network["num_hidden_layers"], network["hidden_size"]
        millions = record["progress"]["tokens"] / 1e6
        rows = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
        # One row is of few texts.
        loss, guessed = (
            statistics.mean(row[name] for row in rows[-20:])
            for name in ("generator_loss", "generator_accuracy")
        )
        return _paragraph(
            f"`generator/` ({layers} layers, {width} wide) was trained afterwards, alone, while "
            "the encoder and the embeddings that both have in common stayed as they are "
            f"(`--schedule {record['settings']['schedule']}`): masked LM on {millions:.0f} million "
            f"tokens of the same corpus in {minutes:.0f} minutes, which are not in the figures "
            f"above; over its last steps with a loss of {loss:.2f}, {guessed:.0%} of the masked "
            "tokens guessed. `--init` goes on with both if `--unigram-fraction 0` is given or "
            "`--max-tokens`, `--max-steps` or `--epochs` make the run longer than 50 million "
            "tokens; with a copy of this folder without `generator/` it begins a new one."
        )
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise _no_record(folder / "run.json", error) from error


def _cost(record: dict[str, Any], classifiers: Mapping[str, Path]) -> str:
    """What the figures of pre-training leave out."""
    minutes = {
        task: seconds / 60
        for task, folder in classifiers.items()
        if (seconds := read_json(folder / "report.json").get("seconds")) is not None
    }
    cost = "These figures are of pre-training alone."
    if minutes:
        each = " and ".join(f"{time:.0f} minutes for {task}" for task, time in minutes.items())
        cost += f" Fine-tuning its classifiers, all folds included, took {each}."
    # True of the machine that the known corpus is on.
    return f"{cost} Nothing was rented." if _is_known(record) else cost


def _where(record: dict[str, Any], hours: float) -> str:
    if record["device"] != "cpu":
        return f"one {record['device']}"
    energy = f"{hours * WATTS / 1000:.2f} kWh if they draw {WATTS} W"
    return f"{record['threads']} CPU cores, no GPU (about {energy})"


def _sources(path: Path) -> str:
    """Rows of kept texts and licence by source, of a report of the cleaner.

    Raises:
        InputError: it is none, or has a file of unknown licence.
    """
    report, kept = read_json(path), dict.fromkeys(LICENCES, 0)
    try:
        counts = {file: counts["kept"] for file, counts in report["sources"].items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise _no_record(path, error) from error
    for file, count in counts.items():
        source = next((name for name in LICENCES if file.startswith(name)), None)
        if source is None:
            raise InputError(
                f"{path}: expected files of {', '.join(LICENCES)}, found {file}; add its source "
                f"and licence to LICENCES in {Path(__file__).name}"
            )
        kept[source] += count
    return "\n".join(
        f"| {about} | {kept[source]:,} | {licence} |"
        for source, (about, licence) in LICENCES.items()
        if kept[source]
    )


def _filled(template: str, values: dict[str, Any]) -> str:
    text = (TEMPLATES / f"{template}.md").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        InputError: it is not there, or holds something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(
            f"expected {path}, found none; name another folder by --output or --work"
        ) from error
    except ValueError as error:
        raise InputError(
            f"expected JSON in {path}, found {error}; put the original back"
        ) from error
    if not isinstance(found, dict):
        raise InputError(f"expected a JSON object in {path}, found {type(found).__name__}")
    return found
