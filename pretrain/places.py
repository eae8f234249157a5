"""Where networks to begin with lie: what a path or a Hub id can mean, and whether files are there.

Nothing is loaded here, so that a mistyped path is answered before anything long is imported.
"""

import re
from pathlib import Path

from corpora.errors import InputError

WEIGHTS = "model.safetensors"
_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")


def is_hub_id(source: str) -> bool:
    """Whether `source` can be a repository of the Hub, `owner/name` or a name, and is no path here.

    `runs/new` looks like one, too; a first part that is a folder here says it is not.
    """
    path = Path(source)
    local = path.exists() or ("/" in source and Path(path.parts[0]).is_dir())
    return not local and _HUB_ID.fullmatch(source) is not None


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
    for file in ("config.json", WEIGHTS):
        if not (folder / file).is_file():
            raise InputError(
                "expected --init random, word-vectors, a Hub id such as owner/name, or a directory "
                "with discriminator/ (and generator/), or with a model's config.json and "
                f"{WEIGHTS}, found {directory} and no {folder / file}; weights in other formats "
                "are not read"
            )


def check_generator_files(directory: str | Path) -> None:
    """Refuse a `--generator-from` without a generator, before anything long is begun."""
    for file in ("config.json", "model.safetensors", "tokenizer.json"):
        path = Path(directory) / "generator" / file
        if not path.is_file():
            raise InputError(
                f"expected a run with a trained generator as --generator-from, found no {path}; "
                "give one of pretrain/run.py that trained one (short runs: --unigram-fraction 0)"
            )
