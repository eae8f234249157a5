"""Folders of models: what a path or a Hub id can mean, and whether its files are there.

Nothing is loaded here, so that a mistyped path is answered before anything long is imported.
"""

import difflib
import json
import re
from pathlib import Path
from typing import Any

from malmoi.errors import InputError
from malmoi.messages import Phrase
from malmoi.paths import checkpoint, home, runs

CONFIG = "config.json"
# The part of a pre-training run that classifies best (ELECTRA, section 2: the generator is
# thrown away after pre-training).
ENCODER = "discriminator"
WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
_ADAPTER = "adapter_config.json"
PICKLED = "pytorch_model.bin"
# The linear part of a classifier, which only this project reads.
LINEAR, LINEAR_WEIGHTS = "linear.json", "linear.safetensors"
# What `malmoi export` adds: networks where the Hub and transformers.js look for them, and what is
# known of the model.
PUBLISHED_FP32, PUBLISHED_INT8 = "onnx/model.onnx", "onnx/model_quantized.onnx"
PUBLISHED_DESCRIPTION = "onnx/malmoi.json"
# Starts of a pre-training without a checkpoint.
_FROM_NOTHING = ("random", "word-vectors")
# An encoder that has read so many times as much is named beside one that is taken.
_FAR_MORE = 10
_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")


def is_hub_id(source: str) -> bool:
    """Whether `source` can be a repository of the Hub, `owner/name` or a name, and is no path here.

    `runs/new` looks like one, too; a first part that is a folder here says it is not.
    """
    path = Path(source)
    local = path.exists() or ("/" in source and Path(path.parts[0]).is_dir())
    return not local and _HUB_ID.fullmatch(source) is not None


def weight_files(folder: Path) -> list[Path]:
    """The safetensors of a network, one or in shards; empty where one is missing."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    names = _object_at(read_json(folder / INDEX), "weight_map").values()
    files = [folder / name for name in sorted(set(map(str, names)))]
    return files if all(file.is_file() for file in files) else []


def conversion(source: str | Path, folder: Path, flag: str, revision: str | None = None) -> Phrase:
    """How weights that were pickled become safetensors, for a message.

    They are not read here, for a pickle can run any code.

    Args:
        source: what is named in the line, a folder or a Hub id.
        folder: has its config.json, which says whether there is a classifier's head to keep.
        flag: that the new folder is for.
        revision: of the Hub id.
    """
    classifies = architecture(folder).endswith("Classification")
    head = "SequenceClassification" if classifies else "PreTraining"
    at = "" if revision is None else f", revision='{revision}'"
    return Phrase(
        "convert it once, if you trust it, and give the new folder as {flag}: "
        'python -c "from transformers import AutoModelFor{head} as M, AutoTokenizer as T; '
        "[a.from_pretrained('{source}'{at}).save_pretrained('converted') for a in (M, T)]\"",
        flag=flag,
        head=head,
        source=source,
        at=at,
    )


def discriminator_folder(directory: str | Path) -> Path:
    """Where the discriminator of a run or released checkpoint lies.

    A run has it in `discriminator/`; a released checkpoint is one itself, so that
    `AutoModel.from_pretrained` takes it. Whether it is there is not looked at.
    """
    path = Path(directory)
    inner = path / "discriminator"
    return path if (path / "config.json").is_file() and not inner.is_dir() else inner


def check_discriminator_files(directory: str | Path) -> None:
    """Refuse a directory without a discriminator's files; whether they are whole is not looked at.

    Raises:
        InputError: with the file that is missing.
    """
    folder = discriminator_folder(directory)
    if not weight_files(folder) and (folder / PICKLED).is_file():
        raise InputError(
            "expected {weights} in {folder}, found {pickled} alone, which is not read; {advice}",
            weights=WEIGHTS,
            folder=folder,
            pickled=PICKLED,
            advice=conversion(folder, folder, "--init"),
        )
    for file in ("config.json", WEIGHTS):
        if not (folder / file).is_file() and not (file == WEIGHTS and weight_files(folder)):
            raise InputError(
                "expected --init random, word-vectors, a Hub id such as owner/name, or a "
                "directory with discriminator/ (and generator/), or with a model's config.json "
                "and {weights}, found {directory} and no {file}; weights in other formats are not "
                "read",
                weights=WEIGHTS,
                directory=directory,
                file=folder / file,
            )


def check_generator_files(directory: str | Path) -> None:
    """Refuse a `generator.init` without a generator, before anything long is begun."""
    for file in ("config.json", "model.safetensors", "tokenizer.json"):
        path = Path(directory) / "generator" / file
        if not path.is_file():
            raise InputError(
                "expected a run with a trained generator as generator.init, found no {path}; give "
                "one of pretrain/run.py that trained one, as it does by default",
                path=path,
            )


def has_weights(directory: Path) -> bool:
    """Whether `directory` holds a configuration and safetensors weights, whole or in shards."""
    return (directory / CONFIG).is_file() and any(
        (directory / name).is_file() for name in (WEIGHTS, INDEX)
    )


def is_encoder(directory: Path) -> bool:
    """Whether `directory` holds a pre-trained discriminator."""
    return has_weights(directory) and architecture(directory) == "ElectraForPreTraining"


def is_linear_alone(directory: Path) -> bool:
    """Whether `directory` holds a linear classifier and no encoder that was trained with it."""
    return (directory / LINEAR).is_file() and not (directory / CONFIG).is_file()


def find_encoder(root: Path | None = None) -> Path:
    """The newest finished pre-training run's discriminator, else the smallest released one.

    Args:
        root: the folder with `runs/` and `checkpoints/`; `malmoi.paths.home()` without one.

    Raises:
        InputError: there is neither.
    """
    root = home() if root is None else root
    finished = [
        run / ENCODER
        for run in (root / "runs" / "pretrain").glob("*")
        if not run.name.startswith(".")
        and has_weights(run / ENCODER)
        and _has_learnt(read_json(run / "run.json"))
    ]
    if finished:
        return max(finished, key=lambda path: (path.parent / "run.json").stat().st_mtime)
    if released := [
        path
        for folder in sorted((root / "checkpoints").glob("*"))
        for path in (folder, folder / ENCODER)
        if is_encoder(path)
    ]:
        return min(released, key=_weights_size)
    raise InputError(
        "no pre-trained encoder under {runs} or {checkpoints}: run `python pretrain/run.py "
        "--corpus corpora/comments` first or give --model",
        runs=root / "runs" / "pretrain",
        checkpoints=root / "checkpoints",
    )


def _has_learnt(record: dict[str, Any]) -> bool:
    """Whether a run is finished; `--max-steps 0` only writes what it would have begun with."""
    return record.get("status") == "finished" and _object_at(record, "progress").get("step") != 0


def find_classifiers(root: Path | None = None, *, every_task: bool = False) -> list[Path]:
    """Classifiers on disk: own runs, newest first, then released.

    Only complete runs count: weights (or a linear classifier alone) and report.json are there.

    Args:
        root: the folder with `runs/` and `checkpoints/`; `malmoi.paths.home()` without one.
        every_task: those of several labels, of pairs and of values, too: see `unsupported_task`.
    """
    root = home() if root is None else root
    runs = [
        path
        for path in (root / "runs" / "finetune").glob("*/model")
        if (has_weights(path) or is_linear_alone(path))
        and (path.parent / "report.json").is_file()
        and not path.parent.name.startswith(".")
    ]
    runs.sort(key=lambda path: (path.parent / "report.json").stat().st_mtime, reverse=True)
    released = [
        path
        for path in sorted((root / "checkpoints").glob("*"))
        if has_weights(path) and architecture(path).endswith("ForSequenceClassification")
    ]
    return [
        path for path in runs + released if every_task or not unsupported_task(read_config(path))
    ]


def unsupported_task(config: dict[str, Any]) -> str:
    """Why a model is not for the app, which shows one label of one text; empty where it is.

    Args:
        config: its config.json; `problem_type` is transformers' field, `finetune_task` ours.
    """
    if config.get("problem_type") == "multi_label_classification":
        return "gives several labels to a text"
    if config.get("problem_type") == "regression":
        return "predicts a value, not a label"
    if config.get("finetune_task") in ("pair", "pair-regression"):
        return "reads two texts at a time"
    return ""


def better_read(encoder: Path, root: Path | None = None) -> str:
    """A line on a released encoder that has read far more than one that began from nothing.

    `find_encoder` takes the newest run, which may have been a first try of a minute.

    Args:
        encoder: what `find_encoder` found.
        root: as there.

    Returns:
        The line; "" where no released encoder has read ten times as many tokens, or where this one
        went on from a checkpoint.
    """
    root = home() if root is None else root
    begun = read_json(encoder.parent / "run.json")
    if _object_at(begun, "plan", "start").get("init") not in _FROM_NOTHING:
        return ""
    read = _object_at(begun, "progress").get("tokens", 0)
    others = {
        path: _object_at(read_json(path / "run.json"), "progress").get("tokens", 0)
        for path in sorted((root / "checkpoints").glob("*"))
        if is_encoder(path)
    }
    more = [path for path, tokens in others.items() if tokens > _FAR_MORE * read]
    if not more:
        return ""
    other = min(more, key=_weights_size)
    return (
        f"{encoder.parent.name} has read {read:,.0f} tokens, {other.name} "
        f"{others[other]:,.0f}: --model {other.name} is likely the better start"
    )


def _object_at(values: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The object below some keys; empty where there is none."""
    for key in keys:
        found = values.get(key)
        values = found if isinstance(found, dict) else {}
    return values


def _weights_size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.safetensors"))


def find_named(source: str | Path) -> Path:
    """The folder of a model that goes by its name: a run of this project, or a released model.

    A path that exists is taken as it is, but for a run of kfold.py, which keeps its model inside;
    so is what names nothing here.
    """
    path = Path(source)
    if path.exists() or len(path.parts) != 1:
        inside = path / "model"
        return path if (path / CONFIG).exists() or not inside.is_dir() else inside
    places = (runs("finetune") / path / "model", runs("pretrain") / path, checkpoint(path.name))
    return next((place for place in places if place.is_dir()), path)


def names_like(name: str) -> list[str]:
    """The runs and released models here whose names are nearest to one that names nothing."""
    folders = (runs("finetune"), runs("pretrain"), home() / "checkpoints")
    names = {place.name for folder in folders for place in folder.glob("[!.]*")}
    return difflib.get_close_matches(name, names, 3, 0.6)


def check_source(source: str | Path) -> str:
    """Return what transformers should load: a directory with weights, or a Hub id.

    Args:
        source: directory, name of a run or of a released model, or Hub id.

    Raises:
        InputError: the directory is missing, or lacks config.json or model.safetensors.
    """
    path = find_named(source)
    if path.is_dir():
        if is_linear_alone(path):
            raise InputError(
                "expected an encoder in {path}, found a linear classifier (kfold.py --quick) "
                "without {config}; give a model that was made without --quick",
                path=path,
                config=CONFIG,
            )
        if not (path / CONFIG).is_file():
            if (path / _ADAPTER).is_file():
                raise InputError(
                    "expected a whole model in {path}, found a LoRA adapter: merge it into its "
                    "base first (merge_and_unload of peft) and give the folder of that",
                    path=path,
                )
            raise InputError("{path} is not a model: it has no {config}", path=path, config=CONFIG)
        if not has_weights(path) and (path / PICKLED).is_file():
            raise InputError(
                "{path} has no weights: expected {weights} beside {config}, found {pickled} "
                "alone, which is not read; {advice}",
                path=path,
                weights=WEIGHTS,
                config=CONFIG,
                pickled=PICKLED,
                advice=conversion(path, path, "--model"),
            )
        if not has_weights(path):
            raise InputError(
                "{path} has no weights: expected {weights} beside {config} (weights in other "
                "formats are not read; save the model again as safetensors)",
                path=path,
                weights=WEIGHTS,
                config=CONFIG,
            )
        return str(path)
    text = str(source)
    if not is_hub_id(text):
        raise InputError("no model directory {text}; check the path", text=text)
    return text


def local_source(source: str | Path, revision: str | None = None) -> str:
    """`check_source`, and of a Hub id the folder in the cache, downloaded if need be.

    Raises:
        InputError: as `check_source` and `hub_directory`.
    """
    found = check_source(source)
    if Path(found).is_dir():
        return found
    from malmoi.hub import hub_directory  # half a second of imports that a folder does not need

    return str(hub_directory(found, revision, "--model"))


def encoder_source(source: str | Path, revision: str | None = None) -> str:
    """The directory to load for `--model`: of a whole run, its discriminator; of a Hub id, the one
    in the cache, downloaded if need be.

    Args:
        source: directory or Hub id.
        revision: branch, tag or commit of a Hub id.

    Raises:
        InputError: the directory is missing or has no weights, or the Hub cannot give them.
    """
    found = discriminator_folder(find_named(source))
    place = Path(local_source(found if found.is_dir() else source, revision))
    inner = discriminator_folder(place)
    return str(inner if inner.is_dir() else place)


def check_classifier(source: str | Path) -> None:
    """`check_source` of a classifier, which may be a linear one.

    Raises:
        InputError: as `check_source`.
    """
    if not is_linear_alone(find_named(source)):
        check_source(source)


def classifier_folder(source: str | Path, revision: str | None = None) -> Path:
    """`local_source` of a classifier, which may be a linear one without weights of a network.

    Raises:
        InputError: as `local_source`, or `source` is neither a text nor a path.
    """
    if not isinstance(source, str | Path):
        raise InputError(
            "expected the name, folder or Hub id of a classifier, found {kind}; write it as text",
            kind=type(source).__name__,
        )
    path = find_named(source)
    return path if is_linear_alone(path) else Path(local_source(source, revision))


def read_config(directory: Path) -> dict[str, Any]:
    """A model directory's config.json; empty when there is none that can be read."""
    return read_json(directory / CONFIG)


def architecture(directory: Path) -> str:
    """The class named in a model directory's config.json; "" when it names none."""
    names = read_config(directory).get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty when the file is missing, unfinished or something else."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
