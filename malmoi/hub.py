"""Checkpoints of the Hugging Face Hub as folders of this machine's cache, safetensors only."""

from contextlib import suppress
from pathlib import Path

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import (
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)

from malmoi.command_line import is_full_disk
from malmoi.errors import InputError
from malmoi.messages import Flag, Phrase
from malmoi.model_folders import (
    INDEX,
    LINEAR_WEIGHTS,
    PICKLED,
    PUBLISHED_DESCRIPTION,
    PUBLISHED_FP32,
    PUBLISHED_INT8,
    WEIGHTS,
    conversion,
    discriminator_folder,
    names_like,
    weight_files,
)
from malmoi.paths import home

# Networks, whole or in shards, and tokenizers; a run's or a release's own folders and record with
# them. No code, and no pickles; ONNX networks only of a folder that malmoi export wrote.
_FILES = [
    *("*.json", "*.txt", "*.model", LINEAR_WEIGHTS),
    *("*model.safetensors", "*model-?????-of-?????.safetensors"),
]
# Branches that are looked into for a converted copy (assumption: the Hub's bot opens one).
_MOST_BRANCHES = 10


def hub_directory(name: str, revision: str | None, flag: str) -> Path:
    """The folder of a repository, downloaded or found in the cache.

    Args:
        name: `owner/name`, or a name alone.
        revision: branch, tag or commit; None for the main branch.
        flag: that named it, for messages.

    Raises:
        InputError: it cannot be had, or has no safetensors; with the branch that has them, if any.
    """
    try:
        directory = Path(snapshot_download(name, revision=revision, allow_patterns=_FILES))
        if (directory / PUBLISHED_DESCRIPTION).is_file():
            # Without a network the weights do, from which the networks are made again.
            with suppress(LocalEntryNotFoundError):
                networks = [PUBLISHED_FP32, PUBLISHED_INT8]
                snapshot_download(name, revision=revision, allow_patterns=networks)
    except Exception as error:  # the library's own types, and those of what it downloads with
        if isinstance(error, OSError) and is_full_disk(error):
            raise
        wanted = name
        if revision is not None:
            wanted = Phrase("{name} at revision {revision}", name=name, revision=revision)
        if "/" in name:
            raise InputError(
                "cannot get {flag} {wanted} from the Hugging Face Hub: {error}; check the name "
                "and the connection, or give a directory",
                flag=flag,
                wanted=wanted,
                error=_reason(error),
            ) from error
        near = names_like(name)
        place = str(home().absolute())
        if not home().is_dir():
            place = Phrase("{home}, which is not there", home=place)
        hint = Phrase("check the name")
        if near:
            hint = Phrase("did you mean {near: or }?", near=near)
        elif name.startswith("malmoi-"):
            hint = Phrase("malmoi models get {name} brings a released model", name=name)
        raise InputError(
            "expected {flag}, the name of a run or a released model in {where}, a folder or a Hub "
            "id, found {wanted}: nothing here has that name, and the Hugging Face Hub cannot give "
            "it ({error}); {hint}",
            flag=flag,
            where=place,
            wanted=wanted,
            error=_reason(error),
            hint=hint,
        ) from error
    if not weight_files(discriminator_folder(directory)):
        raise InputError(_without_safetensors(name, revision, flag, directory))
    return directory


def _reason(error: Exception) -> str:
    """Why the Hub gave nothing, in a few words where the library takes a paragraph."""
    if isinstance(error, LocalEntryNotFoundError | OfflineModeIsEnabled):
        return Phrase("no connection to it, and no copy in its cache")
    if isinstance(error, RepositoryNotFoundError):
        return Phrase("it has no such repository that may be read")
    return " ".join(str(error).split()).rstrip(".")


def _without_safetensors(name: str, revision: str | None, flag: str, directory: Path) -> Phrase:
    found, branch = _files_and_branch(name, revision)
    if branch is not None:
        return Phrase(
            "expected {weights} in {name} on the Hugging Face Hub, found none on this branch; the "
            "branch {branch} has it: add {flag}",
            weights=WEIGHTS,
            name=name,
            branch=branch,
            flag=Flag("--revision", branch),
        )
    if PICKLED in found:
        line = conversion(name, discriminator_folder(directory), flag, revision)
        return Phrase(
            "expected {weights} in {name} on the Hugging Face Hub, found {pickled} alone, which is "
            "not read; {advice}",
            weights=WEIGHTS,
            name=name,
            pickled=PICKLED,
            advice=line,
        )
    return Phrase(
        "expected {weights} in {name} on the Hugging Face Hub, found none in {directory}; weights "
        "in other formats are not read, and without a network only what was downloaded before is "
        "there",
        weights=WEIGHTS,
        name=name,
        directory=directory,
    )


def _files_and_branch(name: str, revision: str | None) -> tuple[set[str], str | None]:
    """The files of a revision, and another that has safetensors; nothing where nobody answers."""
    hub = HfApi()
    try:
        files = set(hub.list_repo_files(name, revision=revision))
        refs = hub.list_repo_refs(name, include_pull_requests=True)
    except Exception:  # as above; what is known already is said without
        return set(), None
    branches = [branch.name for branch in refs.branches]
    # The newest first: the bot asks again when the weights have changed.
    branches += [ref.ref for ref in reversed(refs.pull_requests or [])]
    for branch in branches[:_MOST_BRANCHES]:
        try:
            there = set(hub.list_repo_files(name, revision=branch))
        except Exception:  # as above
            continue
        if {WEIGHTS, INDEX} & there:
            return files, branch
    return files, None
