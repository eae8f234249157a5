"""Where a run begins: what --init or --generator-from names, found and looked at, not loaded."""

from functools import cache
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig

from corpora.command_line import is_full_disk
from corpora.errors import InputError
from pretrain.batches import WIDTH_MULTIPLE
from pretrain.places import (
    WEIGHTS,
    check_discriminator_files,
    discriminator_folder,
    is_hub_id,
)
from pretrain.saving import quiet_transformers
from pretrain.settings import PRESETS, PresetName

_DISCRIMINATOR = "ElectraForPreTraining"
# Networks and tokenizer of a repository; a run's or a release's own folders and record with them.
_HUB_FILES = ["*.json", "*model.safetensors", "*vocab.txt"]


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


def check_files(directory: str | Path) -> None:
    """Refuse a directory without a discriminator, before anything long is begun.

    Raises:
        InputError: a file is missing or damaged, or of another network than a discriminator.
    """
    check_discriminator_files(directory)
    folder = discriminator_folder(directory)
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
