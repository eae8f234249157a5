"""Find a pre-trained encoder and put a fresh classification head on it."""

import json
from pathlib import Path
from typing import Any

from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    set_seed,
)

from corpora.errors import InputError
from corpora.paths import home
from finetune.model_files import check_vocabulary, load_tokenizer, loading
from finetune.model_places import CONFIG, check_source, has_weights
from finetune.tasks import PROBLEM_TYPES, Task
from pretrain.places import discriminator_folder

# The part of a pre-training run that classifies best (ELECTRA, section 2: the generator is
# thrown away after pre-training).
ENCODER = "discriminator"


def read_config(directory: Path) -> dict[str, Any]:
    """A model directory's config.json; empty when there is none that can be read."""
    return _read_json(directory / CONFIG)


def architecture(directory: Path) -> str:
    """The class named in a model directory's config.json; "" when it names none."""
    config = read_config(directory)
    names = config.get("architectures") or [""]
    return str(names[0])


def find_encoder(root: Path | None = None) -> Path:
    """The newest finished pre-training run's discriminator, else a released one.

    Args:
        root: the folder with `runs/` and `checkpoints/`; `corpora.paths.home()` without one.

    Raises:
        InputError: there is neither.
    """
    root = home() if root is None else root
    finished = [
        run / ENCODER
        for run in (root / "runs" / "pretrain").glob("*")
        if not run.name.startswith(".")
        and has_weights(run / ENCODER)
        and _read_json(run / "run.json").get("status") == "finished"
    ]
    if finished:
        return max(finished, key=lambda path: (path.parent / "run.json").stat().st_mtime)
    for released in sorted((root / "checkpoints").glob("*")):
        for path in (released, released / ENCODER):
            if has_weights(path) and architecture(path) == "ElectraForPreTraining":
                return path
    raise InputError(
        f"no pre-trained encoder under {root / 'runs' / 'pretrain'} or {root / 'checkpoints'}: run "
        "`python pretrain/run.py --corpus corpora/comments` first or give --model"
    )


def encoder_source(source: str | Path) -> str:
    """What to load for `--model`: a directory (of a whole run, its discriminator) or a Hub id.

    Raises:
        InputError: the directory is missing or has no weights.
    """
    found = discriminator_folder(source)
    return check_source(found if found.is_dir() else source)


def load_encoder_tokenizer(source: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer of what `load_for_classification` loads from the same `source`."""
    return load_tokenizer(encoder_source(source))


def shape_of(source: str | Path) -> str:
    """The size of an encoder, such as `4 x 256, 32,000 entries`: what random weights go by.

    Raises:
        InputError: there is no configuration, or it cannot be read.
    """
    place = encoder_source(source)
    with loading(place, "the configuration"):
        config = AutoConfig.from_pretrained(place, trust_remote_code=False)
    return f"{config.num_hidden_layers} x {config.hidden_size}, {config.vocab_size:,} entries"


def load_for_classification(
    source: str | Path,
    labels: list[str],
    *,
    dropout: float = 0.1,
    seed: int = 42,
    random_weights: bool = False,
    tokenizer: PreTrainedTokenizerBase | None = None,
    task: Task = "single",
) -> PreTrainedModel:
    """The encoder of `source` with a new head for `labels`, in float32, on the CPU.

    Args:
        source: model directory, pre-training run, or Hub id.
        labels: names in the order of their ids.
        dropout: fraction, applied in the encoder and before the head.
        seed: of the new weights.
        random_weights: same shape, nothing loaded; the baseline that shows what pre-training adds.
        tokenizer: checked against the model's vocabulary when given.
        task: decides `problem_type`, and is noted in the configuration as `finetune_task`.

    Raises:
        InputError: no weights, damaged weights, or weights that leave more than the head new.
    """
    place = encoder_source(source)
    with loading(place, "the configuration"):
        config = AutoConfig.from_pretrained(place, trust_remote_code=False)
    config.id2label = dict(enumerate(labels))
    config.label2id = {label: index for index, label in enumerate(labels)}
    config.problem_type = PROBLEM_TYPES[task]
    # What `problem_type` does not say: whether the model expects two texts.
    config.finetune_task = task
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"):
        if hasattr(config, name):
            setattr(config, name, dropout)
    set_seed(seed)
    with loading(place, "the model"):
        if random_weights:
            model = AutoModelForSequenceClassification.from_config(config, trust_remote_code=False)
        else:
            model, report = AutoModelForSequenceClassification.from_pretrained(
                place,
                config=config,
                dtype="float32",
                use_safetensors=True,
                trust_remote_code=False,
                # A head of another task may have another number of labels; what may differ is
                # checked below.
                ignore_mismatched_sizes=True,
                output_loading_info=True,
            )
            _check_only_head_is_new(model, report, place)
    if tokenizer is not None:
        check_vocabulary(model, tokenizer, place)
    return model


def _check_only_head_is_new(model: PreTrainedModel, report: dict[str, Any], place: str) -> None:
    mismatched = [entry[0] if isinstance(entry, tuple) else entry for entry in _mismatched(report)]
    prefix = f"{model.base_model_prefix}."
    # A pooler is part of the head in all but name: masked-language models are saved without it.
    new = sorted(
        key
        for key in {*report["missing_keys"], *mismatched}
        if key.startswith(prefix) and ".pooler." not in key
    )
    if new:
        shown = ", ".join(new[:3]) + (f" and {len(new) - 3} more" if len(new) > 3 else "")
        raise InputError(
            f"{place} is not a whole encoder: {len(new)} weights are missing or of another shape "
            f"({shown})"
        )


def _mismatched(report: dict[str, Any]) -> list[Any]:
    return list(report.get("mismatched_keys") or ())


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty when the file is missing, unfinished or something else."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
