"""Where a run begins: what --init or --generator-from names, found and looked at, not loaded."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig

from corpora.command_line import is_full_disk
from corpora.errors import InputError
from pretrain.batches import WIDTH_MULTIPLE
from pretrain.saving import quiet_transformers
from pretrain.settings import PRESETS, PresetName

_DISCRIMINATOR = "ElectraForPreTraining"
# Networks and tokenizer of a repository; a run's or a release's own folders and record with them.
_HUB_FILES = ["*.json", "*model.safetensors", "*vocab.txt"]
WEIGHTS = "model.safetensors"
_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")


def is_hub_id(source: str) -> bool:
    """Whether `source` can be a repository of the Hub, `owner/name` or a name, and is no path here.

    `runs/new` looks like one, too; a first part that is a folder here says it is not.
    """
    path = Path(source)
    local = path.exists() or ("/" in source and Path(path.parts[0]).is_dir())
    return not local and _HUB_ID.fullmatch(source) is not None


@cache
def starting_directory(init: str) -> Path:
    """The directory that `--init` stands for; a Hub id is downloaded, or found in the cache.

    What is no Hub id is returned as it is, there or not. Once a process: a run that is resumed on
    a new revision gets its weights from its own checkpoint anyway.

    Raises:
        InputError: the Hub has no such repository, or cannot be reached.
    """
    # Repositories without an owner are a handful of old ones; a misspelt word is likelier.
    if "/" not in init or not is_hub_id(init):
        return Path(init)
    try:
        directory = Path(snapshot_download(init, allow_patterns=_HUB_FILES))
    except Exception as error:  # the library's own types, and those of what it downloads with
        if isinstance(error, OSError) and is_full_disk(error):
            raise
        raise InputError(
            f"cannot get --init {init} from the Hugging Face Hub: {' '.join(str(error).split())}; "
            "check the name and the connection, or give a directory"
        ) from error
    if not (discriminator_folder(directory) / WEIGHTS).is_file():
        raise InputError(
            f"expected {WEIGHTS} in {init} on the Hugging Face Hub, found none in {directory}; "
            "weights in other formats are not read, and without a network only what was "
            "downloaded before is there"
        )
    return directory


def discriminator_folder(directory: str | Path) -> Path:
    """Where the discriminator of a run or released checkpoint lies.

    A run has it in `discriminator/`; a released checkpoint is one itself, so that
    `AutoModel.from_pretrained` takes it. Whether it is there is not looked at.
    """
    path = Path(directory)
    inner = path / "discriminator"
    return path if (path / "config.json").is_file() and not inner.is_dir() else inner


def check_files(directory: str | Path) -> None:
    """Refuse a directory without a discriminator, before anything long is begun.

    Raises:
        InputError: a file is missing or damaged, or of another network than a discriminator.
    """
    folder = discriminator_folder(directory)
    for file in ("config.json", WEIGHTS):
        if not (folder / file).is_file():
            raise InputError(
                "expected --init random, word-vectors, a Hub id such as owner/name, or a directory "
                "with discriminator/ (and generator/), or with a model's config.json and "
                f"{WEIGHTS}, found {directory} and no {folder / file}; weights in other formats "
                "are not read"
            )
    config = config_in(folder, directory)
    kinds = config.architectures or [_DISCRIMINATOR]
    if config.model_type != "electra" or _DISCRIMINATOR not in kinds:
        raise InputError(
            f"expected an ELECTRA discriminator ({_DISCRIMINATOR}) in {folder}, found "
            f"{' and '.join(kinds)} of type {config.model_type}; of a published pair give the "
            "discriminator, and of a classifier the encoder that it was made from"
        )
    try:
        with safe_open(folder / WEIGHTS, framework="pt"):
            pass  # its table of contents was read, and fits the file's size
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"cannot read the weights in {folder / WEIGHTS}: {error}; copy or download them again"
        ) from error


def check_generator_files(directory: str | Path) -> None:
    """Refuse a `--generator-from` without a generator, before anything long is begun."""
    for file in ("config.json", "model.safetensors", "tokenizer.json"):
        path = Path(directory) / "generator" / file
        if not path.is_file():
            raise InputError(
                f"expected a run with a trained generator as --generator-from, found no {path}; "
                "give one of pretrain/run.py that trained one (short runs: --unigram-fraction 0)"
            )


def check_positions(folder: Path, length: int) -> None:
    """Refuse rows longer than a network has positions for, before anything long is begun.

    Args:
        folder: holds the network.
        length: most tokens of a row.

    Raises:
        InputError: with both numbers, or config.json cannot be read.
    """
    known = config_in(folder, folder).max_position_embeddings // WIDTH_MULTIPLE * WIDTH_MULTIPLE
    if known < length:
        raise InputError(
            f"expected --max-length of at most {known}, for which the network in {folder} has "
            f"positions, found {length}; give {known} or less"
        )


def preset_of(directory: str | Path) -> PresetName:
    """The preset whose learning rate and batch suit the checkpoint in `directory` best.

    Raises:
        InputError: no run or checkpoint is there.
    """
    check_files(directory)
    config = config_in(discriminator_folder(directory), directory)
    if config.hidden_size > PRESETS["small"].hidden_size:
        return "base"
    return "tiny" if config.num_hidden_layers <= PRESETS["tiny"].num_layers else "small"


def config_in(folder: Path, directory: str | Path) -> Any:
    """The configuration of a network, an `ElectraConfig` where it is an ELECTRA.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with quiet_transformers():
            return AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # of OSError and ValueError, but also of types of its own
        raise InputError(
            f"cannot read the configuration in {directory}: {' '.join(str(error).split())}; copy "
            "or download it again"
        ) from error
