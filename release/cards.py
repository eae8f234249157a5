"""The cards of the released checkpoints, filled in from their own records and measured results."""

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from tokenizers import Tokenizer

from malmoi.errors import InputError
from malmoi.labels.tasks import read_task
from pretrain.config.settings import FEW_TOKENS
from release.check import FROM_NOTHING, read_json
from release.scores_table import linear_on, paragraph, quality_table, weights_sha256

# Rated reviews of e9t/nsmc's raw release, without those that the test files were drawn from.
REVIEWS = "reviews_rated.tsv.gz"
ROOT = Path(__file__).parents[1]
TASKS = {name: read_task(ROOT / "corpora" / name) for name in ("reviews", "memos")}
NAMES = {
    name: f"{', '.join(task.label_names[:-1])} or {task.label_names[-1]}"
    for name, task in TASKS.items()
}
# Lowest and highest rating of a label.
RATINGS = {label.name: label.ratings for label in TASKS["reviews"].labels if label.ratings}
TEMPLATES = Path(__file__).parent / "card_templates"
# By the beginning of a file's name.
LICENCES = {
    REVIEWS: ("film reviews (e9t/nsmc)", "CC0 1.0"),
    "ChatbotData.csv": ("everyday sentences (songys/Chatbot_data)", "MIT"),
    "val.tsv": ("comments of 12 platforms (searle-j/KOTE, its val file)", "MIT"),
    "petitions_": (
        "petitions to the government (lovit/petitions_archive)",
        "public record; the archive states no licence, Korpora lists it as CC0 1.0",
    ),
}
# What the encoder's card names of the objective.
LEARNT = ("mask_fraction", "unigram_fraction", "bag_weight")
# A laptop's two cores under load, to give the energy an order of magnitude.
WATTS = 30
# Of each released encoder, by its weights' hash, what its record does not say of the machine
# (docs/log, 2026-11-25).
MACHINES = {
    "01bf32d096baf6ca969c20ffaf5ec2704b0114c5dc5a412dd39b487aa24264c9": """It was two cores of an
Intel Xeon with AMX, a shared server; nothing was rented for it.""",
}
STOCK = "From the released encoder; a stock `ElectraForSequenceClassification`."
# The shares are those of the raw release's ratings 1-4 and 9-10 that are left in REVIEWS, for the
# official file is a draw from it; equal texts were counted, both sides cleaned (2026-11-25).
NSMC = """Do not score it on NSMC's official `ratings_test.txt`, nor compare such a figure: it has
read most of it. That file and the film reviews here come from one release, from which only the test
files were taken out that this project drew anew. By arithmetic, about 70% of the official file's
negative and 90% of its positive reviews (of 10 characters or more) were read in pre-training. Of
the project's own test files (NSMC, rebuilt split; three classes) no review was (those to learn from
were, without labels); 61 of 50,000 and 8 of 15,000 texts in them, such as `10점 만점에 10점!!`,
equal one of its corpus, which has none under 10 characters, once both are clean. As they are
written, 1,606 of the 50,000 stand in the 150,000 labelled reviews too (248 of them have 10
characters or more), and 423 of the 15,000 in the 615,160 rated ones (all shorter, such as `굿`;
counted 2026-11-23)."""
# Of each clean corpus of which NSMC and its like are true, by its hash as run.json has it, what was
# counted on it of the other tasks' test files.
OTHER_TESTS = {
    "e3151868a08d073cd86c4b28553e1ea478457b1634dff2cf0224bf6341b45138": """Of the other tasks' test
files its corpus has 10 of KOTE's 4,997 distinct texts, film reviews quoted there, and none of the
question pairs, of KorSTS or of the hate speech file (counted 2026-11-25, both sides cleaned). It
has read KOTE's val file, without labels: the texts that KOTE's classifier then learns from.""",
}
BEGAN_ELSEWHERE = """What stands here of test files is of the corpus that it went on with; see the
card of the encoder that it went on from, too."""
NSMC_OF_REVIEWS = """By arithmetic, some of its rated reviews are in NSMC's official
`ratings_test.txt`, most of which the encoder has read: do not score it on that file, nor compare
such a figure. Of this project's own test files it has seen no review, but a few of the same short
texts."""
# Where it learnt other ratings first. Both sides cleaned; counted 2026-11-24.
NSMC_OF_RATINGS = """By arithmetic, many of its rated reviews are in NSMC's official
`ratings_test.txt`, most of which the encoder has read: do not score it on that file, nor compare
such a figure. Of this project's own test files (NSMC, rebuilt split; three classes) 1,055 of
50,000 and 253 of 15,000 texts equal one that it has learnt with a label, nearly all of them shorter
than 10 characters, such as `최고` (23 and 4 are longer)."""
NSMC_OF_WRITTEN = """The encoder that it began as has read most of NSMC's official
`ratings_test.txt`: do not score it on that file, nor compare such a figure."""
# What pre-training on the known corpus leaves to classifiers (counted 2026-11-25).
RARE_EMOJI = """Common emoji have entries of their own, but hardly one save ♥ was in its texts:
what they mean is for a classifier to learn."""
# Of a classifier that learnt from no more written reviews than there were before 2026-11-24.
BEFORE_NEGATIONS = 8_273
NEGATIONS = """It does not understand short negations, of which it has learnt too few: of 440 texts
such as `안 좋아요` (긍정, it says) or `문제 없어요` (부정) it has 64% right (`docs/log`,
2026-11-24, where the written reviews of today have such texts)."""
# Of one that learnt from more.
WITH_NEGATIONS = """Short negations stay its weakest plain texts: of 502 such as `안 맛있어요` the
classifier released on 2026-11-25 had 75% right out of fold, of other plain ones 85 to 97%."""
OTHER_NSMC = f"""Its `{REVIEWS}` was another than the project's, and nobody has looked which reviews
of NSMC's test files are in it: do not score it on any of them."""
WRITTEN_BY = "written and labelled by a large language model, one text at a time"
SAME_MODEL = (
    "Their writers and readers were instances of one language model, so scores on them say how "
    "consistently that model keeps to the guideline, not that people would agree."
)
# The ten commonest by the Unicode Consortium's list of 2019.
EMOJI = "😂❤😍🤣😊🙏💕😭😘👍"
ABOUT = {
    "reviews": {
        "about": f"{NAMES['reviews']}: what a review says, the app's default. {STOCK}",
        "example": "배송은 빨랐는데 향이 너무 세요",
        "data": "film reviews with ratings "
        f"({', '.join(f'{label} {low}-{high}' for label, (low, high) in RATINGS.items())}; CC0), "
        f"as many of each label, and the project's own reviews (`corpora/reviews`; {WRITTEN_BY})",
        "limits": "A rating is no label: people give 8 with a complaint and 10 with none. Some "
        "written reviews are hard on purpose (irony, mixed verdicts). So take its answers as a "
        f"first guess and correct them in the app. {SAME_MODEL}",
    },
    "memos": {
        "about": f"{NAMES['memos']}: what somebody noted for themselves. {STOCK}",
        "example": "내일 세시 치과",
        "data": f"the project's memos (`corpora/memos`; {WRITTEN_BY})",
        "limits": "The memos were written for the project, not collected: people's own notes "
        f"differ more, and the score above will not be reached on them. {SAME_MODEL}",
    },
}
# docs/log, 2026-11-22 and 23: on one or two folds in five of seed 7. Their linear rival
# has one setting that nobody searched.
CHOSEN_ON_FOLDS = """Epochs, learning rate and subword dropout were chosen on other folds of these
texts (`docs/log`), so the scores may be a little too high."""
# Of the classifier of reviews where it learnt from no ratings.
WRITTEN_ALONE = {
    "data": f"the project's own reviews (`corpora/reviews`; {WRITTEN_BY})",
    "limits": "The reviews were written for the project, not collected, and some are hard on "
    "purpose (irony, mixed verdicts): people's own differ. So take its answers as a first guess "
    f"and correct them in the app. {SAME_MODEL}",
}


def encoder_card(folder: Path, classifiers: Mapping[str, Path], home: Path) -> str:
    """The README.md of a released encoder, from its run.json, corpus.json and the results so far.

    Args:
        folder: the encoder.
        classifiers: the classifiers made from it, by task.
        home: the folder that it will lie in.

    Raises:
        InputError: a record is missing, or not one of a release.
    """
    record = read_json(folder / "run.json")
    kept, memos = _kept(folder / "corpus.json"), classifiers["memos"]
    try:
        network, progress = record["networks"]["discriminator"], record["progress"]
        hours, millions = progress["seconds"] / 3600, network["parameters"] / 1e6
        plan = record["plan"]
        values = _start(plan["start"]["init"]) | {
            "name": folder.name,
            "parameters": f"{millions:.1f} million",
            "layers": network["num_hidden_layers"],
            "width": network["hidden_size"],
            "entries": f"{record['vocab_size']:,}",
            "tokens": f"{progress['tokens'] / 1e6:.0f} million",
            "steps": f"{progress['step']:,}",
            "hours": f"{hours:.1f}",
            "where": _where(record, hours),
            "cost": paragraph(_cost(folder, record, classifiers)),
            "reviews": REVIEWS,
            "test_files": _test_files(record),
            "correction": _correction(plan["objective"]["correction_weight"]),
            "texts": _texts(kept),
            "batch": f"{plan['batching']['tokens_per_batch']:,}",
            "rate": f"{plan['optimizer']['learning_rate']:g}",
            "sources": _sources(kept),
            "scores": quality_table(folder, f"{millions:.1f}M"),
            "generator": _generator(folder / "generator"),
            "emoji": _emoji_of_encoder(folder, record),
            "path": _path(home, folder.name),
            "memos": f"[{memos.name}](../{memos.name}/README.md)",
            "memo_scores": _memo_scores(memos),
            "seed": plan["start"]["seed"],
            **{name: f"{plan['objective'][name]:g}" for name in LEARNT},
        }
    except (KeyError, TypeError) as error:
        raise _no_record(folder / "run.json", error) from error
    return _filled("encoder", values)


def classifier_card(folder: Path, task: str, encoder: Path, home: Path) -> str:
    """The README.md of a released classifier, from its report.json; `task` is a key of ABOUT.

    Args:
        home: the folder that it will lie in.

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
    values = ABOUT[task] | {
        "name": folder.name,
        "path": _path(home, folder.name),
        "encoder": encoder.name,
        "scores": scores,
    }
    if task == "reviews" and not _has_rated(report):
        values |= WRITTEN_ALONE
    if first := report.get("ratings_first"):
        values["data"] += (
            f"; before them it learnt the ratings of {first['texts']:,} other film reviews, "
            f"as many of each label (epochs: {first['epochs']})"
        )
    more = (_emoji(folder), _limits_of(task, report, encoder), " ".join(CHOSEN_ON_FOLDS.split()))
    values["limits"] = " ".join([values["limits"], *filter(None, more)])
    values["calibration"] = _calibration(report)
    return _filled("classifier", values)


def _limits_of(task: str, report: dict[str, Any], encoder: Path) -> str:
    """What the records say of its limits."""
    if task == "memos":
        return _beside_linear("memos", "memos", _mean_score(report))
    by_origin = report.get("by_origin", {})
    read = NSMC_OF_REVIEWS if _has_rated(report) else NSMC_OF_WRITTEN
    if "ratings_first" in report:
        read = NSMC_OF_RATINGS
    if not _is_known(read_json(encoder / "run.json")):
        read = OTHER_NSMC
    limits = " ".join(read.split())
    if "written" not in by_origin:
        return limits
    few = by_origin["written"]["texts"] <= BEFORE_NEGATIONS
    limits = f"{' '.join((NEGATIONS if few else WITH_NEGATIONS).split())} {limits}"
    return (
        f"{_beside_linear('written', 'written reviews', by_origin['written']['macro_f1'])} {limits}"
    )


def _has_rated(report: dict[str, Any]) -> bool:
    """Whether there are rated reviews among its texts; true of records that do not say."""
    return "rated" in report.get("by_origin", ("rated",))


def _beside_linear(task: str, texts: str, score: float) -> str:
    """The linear classifier that learnt from the same texts alone, in five folds."""
    linear = linear_on(task)
    if linear is None:
        return f"No simpler classifier was measured on these {texts}."
    model = "A linear classifier over character n-grams that learns from these alone"
    source = "5 folds; `python -m benchmarks.quality.score --linear`"
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
    linear = linear_on("memos")
    if linear is None:
        return f"macro F1 {mean:.4f}"
    verdict = "below" if mean < linear else "not below"
    return (
        f"macro F1 {mean:.4f}, {verdict} the {linear:.4f} of a linear classifier over character "
        "n-grams"
    )


def _mean_score(report: dict[str, Any]) -> float:
    return statistics.mean(fold["macro_f1"] for fold in report["folds"])


def _is_known(record: dict[str, Any]) -> bool:
    return record.get("corpus_sha256") in OTHER_TESTS


def _test_files(record: dict[str, Any]) -> str:
    """What of test files the encoder has read, as far as anybody has looked."""
    if not _is_known(record):
        return OTHER_NSMC
    blocks = [NSMC, paragraph(OTHER_TESTS[record["corpus_sha256"]])]
    if record["plan"]["start"]["init"] not in FROM_NOTHING:
        blocks.append(BEGAN_ELSEWHERE)
    return "\n\n".join(blocks)


def _correction(weight: float) -> str:
    """What the discriminator learns beside telling replaced tokens, if it does."""
    if not weight:
        return ""
    return (
        ", and at the masked positions the discriminator also guesses what stood there "
        f"(`objective.correction_weight={weight:g}`)"
    )


def _texts(kept: Mapping[str, int]) -> str:
    """Kinds of the texts of a corpus, such as "film reviews and petitions"."""
    *most, last = [LICENCES[source][0].split(" (")[0] for source in kept]
    return f"{', '.join(most)} and {last}" if most else last


def _no_record(path: Path, error: Exception) -> InputError:
    return InputError(
        f"expected the record of a release in {path}, found another ({error!r}); name the "
        "folder of a release by --output"
    )


def _start(init: str) -> dict[str, str]:
    """What the encoder began as, in two places of its card."""
    if init == "skip-gram":
        start = "Word embeddings started from skip-gram vectors of the same texts."
        return {"origin": "from nothing", "start": start}
    if init == "word-vectors":
        start = "Word embeddings started from counts of which word pieces occur together in the "
        start += "same texts."
        return {"origin": "from nothing", "start": start}
    if init == "random":
        return {"origin": "from nothing", "start": "All weights started at random."}
    name = f"`{Path(init).name}`"
    return {
        "origin": f"further from {name}",
        "start": f"It went on from {name}, with its tokenizer; what that one has read is not "
        "counted here.",
    }


def _path(home: Path, name: str) -> str:
    """Where to load it from, for who stands in the repository; else its own folder's name."""
    home = home.resolve()
    return str(home.relative_to(ROOT) / name) if home.is_relative_to(ROOT) else name


def _emoji(folder: Path) -> str:
    """How many of the commonest emoji its tokenizer tells apart."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        return ""
    tokenizer = Tokenizer.from_file(str(path))
    unknown = tokenizer.token_to_id("[UNK]")
    known = sum(unknown not in tokenizer.encode(one).ids for one in EMOJI)
    if known == len(EMOJI):
        return ""
    return (
        f"Of the {len(EMOJI)} commonest emoji ({' '.join(EMOJI)}) its vocabulary has "
        f"{known or 'none'}: others are one and the same [UNK] to it, whether they laugh or cry."
    )


def _emoji_of_encoder(folder: Path, record: dict[str, Any]) -> str:
    """What its vocabulary, or else its corpus, lacks of them; after a space."""
    lacking = _emoji(folder) or (RARE_EMOJI if _is_known(record) else "")
    return f" {' '.join(lacking.split())}" if lacking else ""


def _generator(folder: Path) -> str:
    """Where the generator beside the encoder comes from, or that there is none."""
    if not folder.is_dir():
        return paragraph(
            "No generator is released with it; `--init` begins a new one where it needs one."
        )
    if not (folder / "run.json").is_file():  # that of the encoder is its own too
        return paragraph(
            "`generator/` was trained beside it; `--init` goes on with both by default."
        )
    record, metrics = read_json(folder / "run.json"), folder / "metrics.jsonl"
    try:
        minutes, few = record["progress"]["seconds"] / 60, FEW_TOKENS / 1e6
        network = record["networks"]["generator"]
        layers, width = network["num_hidden_layers"], network["hidden_size"]
        millions = record["progress"]["tokens"] / 1e6
        rows = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
        # One row is of few texts.
        loss, guessed = (
            statistics.mean(row[name] for row in rows[-20:])
            for name in ("generator_loss", "generator_accuracy")
        )
        return paragraph(
            f"`generator/` ({layers} layers, {width} wide) was trained afterwards, alone, while "
            "the encoder and the embeddings that both have in common stayed as they are "
            f"(`--recipe {record['plan']['objective']['schedule']}`): masked LM on "
            f"{millions:.0f} million tokens of the same corpus in {minutes:.0f} minutes, which "
            "are not in the figures above; over its last steps with a loss of "
            f"{loss:.2f}, {guessed:.0%} of the masked "
            "tokens guessed. `--init` goes on with both if `--recipe electra` is given or "
            f"`--max-tokens`, `--max-steps` or `--epochs` make the run longer than {few:.0f} "
            "million tokens; with a copy of this folder without `generator/` it begins a new one."
        )
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise _no_record(folder / "run.json", error) from error


def _cost(folder: Path, record: dict[str, Any], classifiers: Mapping[str, Path]) -> str:
    """What the figures of an encoder's pre-training leave out."""
    minutes = {
        task: (seconds + report.get("ratings_first", {}).get("seconds", 0)) / 60
        for task, folder in classifiers.items()
        if (seconds := (report := read_json(folder / "report.json")).get("seconds")) is not None
    }
    cost = "These figures are of pre-training alone."
    if minutes:
        each = " and ".join(f"{time:.0f} minutes for {task}" for task, time in minutes.items())
        cost += f" Fine-tuning its classifiers, all folds included, took {each}."
        alone = folder / "generator" / "run.json"
        hours = [record["progress"]["seconds"] / 3600, *(time / 60 for time in minutes.values())]
        if alone.is_file():
            hours.append(read_json(alone)["progress"]["seconds"] / 3600)
        energy = f", about {_energy(sum(hours))}" if record["device"] == "cpu" else ""
        cost += f" All that is released took {sum(hours):.1f} hours{energy}, the search for the "
        cost += "recipe not counted."
    return f"{cost} {MACHINES.get(weights_sha256(folder), '')}"


def _where(record: dict[str, Any], hours: float) -> str:
    if record["device"] != "cpu":
        return f"one {record['device']}"
    threads = record["plan"]["execution"]["threads"]
    return f"{threads} CPU cores, no GPU (about {_energy(hours)} if they draw {WATTS} W)"


def _energy(hours: float) -> str:
    return f"{hours * WATTS / 1000:.2f} kWh"


def _sources(kept: Mapping[str, int]) -> str:
    """Rows of kept texts and licence by source, a key of LICENCES."""
    return "\n".join(
        f"| {LICENCES[source][0]} | {texts:,} | {LICENCES[source][1]} |"
        for source, texts in kept.items()
    )


def _kept(path: Path) -> dict[str, int]:
    """Kept texts by source, a key of LICENCES, of a report of the cleaner.

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
    if not any(kept.values()):
        raise _no_record(path, ValueError("no text was kept"))
    return {source: texts for source, texts in kept.items() if texts}


def _filled(template: str, values: dict[str, Any]) -> str:
    text = (TEMPLATES / f"{template}.md").read_text(encoding="utf-8")
    return Template(text).substitute(values)
