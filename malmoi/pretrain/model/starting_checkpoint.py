"""Where a run begins: what --init or generator.init names, found and looked at, not loaded."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from transformers import AutoConfig

from malmoi.errors import InputError
from malmoi.files import file_sha256
from malmoi.hub import hub_directory
from malmoi.model_folders import (
    check_discriminator_files,
    discriminator_folder,
    is_hub_id,
    weight_files,
)
from malmoi.pretrain.config.defaults import PRESETS, PresetName
from malmoi.pretrain.config.objective import GENERATOR_SIZE
from malmoi.pretrain.data.batches import WIDTH_MULTIPLE
from malmoi.transformers_models import complete_config, quiet_transformers

_DISCRIMINATOR = "ElectraForPreTraining"


@cache
def starting_directory(init: str, revision: str | None = None) -> Path:
    """The directory that `--init` stands for; a Hub id is downloaded, or found in the cache.

    What is no Hub id is returned as it is, there or not. Once a process: a run that is resumed on
    a new revision gets its weights from its own checkpoint anyway.

    Raises:
        InputError: the Hub has no such repository or revision, or cannot be reached.
    """
    # Repositories without an owner are a handful of old ones; a misspelt word is likelier.
    if "/" not in init or not is_hub_id(init):
        return Path(init)
    return hub_directory(init, revision, "--init")


def starting_sha256(directory: Path) -> str:
    """SHA-256 of the discriminator's weights; of shards that of theirs, in the order of names."""
    hashes = [file_sha256(file) for file in weight_files(discriminator_folder(directory))]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def discriminator_config(directory: str | Path) -> Any:
    """The configuration of a discriminator that can be loaded, looked at before anything long.

    Raises:
        InputError: a file is missing or damaged, or of another network than a discriminator.
    """
    check_discriminator_files(directory)
    folder = discriminator_folder(directory)
    config = config_in(folder, directory)
    kinds = config.architectures or [_DISCRIMINATOR]
    if config.model_type != "electra" or _DISCRIMINATOR not in kinds:
        raise InputError(
            "expected an ELECTRA discriminator ({discriminator}) in {folder}, found {kinds} of "
            "type {model_type}; of a published pair give the discriminator, and of a classifier "
            "the encoder that it was made from",
            discriminator=_DISCRIMINATOR,
            folder=folder,
            kinds=" and ".join(kinds),
            model_type=config.model_type,
        )
    for file in weight_files(folder):
        try:
            with safe_open(file, framework="pt"):
                pass  # its table of contents was read, and fits the file's size
        except (OSError, SafetensorError) as error:
            raise InputError(
                "cannot read the weights in {file}: {error}; copy or download them again",
                file=file,
                error=error,
            ) from error
    return config


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
            "expected --max-length of at most {known}, for which the network in {folder} has "
            "positions, found {length}; give {known} or less",
            known=known,
            folder=folder,
            length=length,
        )


def preset_of(config: Any) -> PresetName:
    """The preset whose learning rate and batch suit a discriminator of this configuration best."""
    if config.hidden_size > PRESETS["small"].hidden_size:
        return "base"
    return "tiny" if config.num_hidden_layers <= PRESETS["tiny"].num_layers else "small"


def new_generator_size(config: Any, *, has_generator: bool) -> float:
    """Width of a generator that is to begin beside a discriminator of this configuration.

    Returns:
        A fraction of the discriminator's; of one that is there already what it usually is.
    """
    base = PRESETS["base"]
    begins = not has_generator and config.hidden_size == base.hidden_size
    return base.generator_size if begins else GENERATOR_SIZE


def config_in(folder: Path, directory: str | Path) -> Any:
    """The configuration of a network, an `ElectraConfig` where it is an ELECTRA.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with quiet_transformers():
            config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # of OSError and ValueError, but also of types of its own
        raise InputError(
            "cannot read the configuration in {directory}: {error}; copy or download it again",
            directory=directory,
            error=" ".join(str(error).split()),
        ) from error
    return complete_config(config, folder)
