"""A folder to a repository of the Hugging Face Hub, as its owner is logged in on this machine."""

from __future__ import annotations

from pathlib import Path

import httpx2
from huggingface_hub import HfApi, get_token
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled
from huggingface_hub.utils import validate_repo_id

from malmoi.command_line import is_full_disk
from malmoi.errors import InputError

_MESSAGE = "Exported by malmoi"
# What the transport and the Hub raise: HfHubHTTPError and OfflineModeIsEnabled are among them.
_OF_THE_HUB = (httpx2.HTTPError, HFValidationError, ConnectionError, TimeoutError)


def check_push(repo_id: str) -> None:
    """Refuse a name that can be no repository, and a machine that is not logged in.

    Raises:
        InputError: either is so.
    """
    try:
        validate_repo_id(repo_id)
        is_valid = repo_id.count("/") == 1
    except HFValidationError:
        is_valid = False
    if not is_valid:
        raise InputError(
            "expected a repository as OWNER/NAME of letters, digits, - _ and ., found {repo_id!r}; "
            "OWNER is your name on the Hub or your organisation's",
            repo_id=repo_id,
        )
    if get_token() is None:
        raise InputError(
            "expected a token of the Hugging Face Hub, found none; make one with the right to "
            "write at huggingface.co/settings/tokens and set HF_TOKEN, or run hf auth login"
        )


def push_folder(folder: Path, repo_id: str, *, private: bool) -> str:
    """Make the repository unless it is there, and send all files of a folder in one commit.

    Args:
        folder: what is sent; files that are there already and not here stay.
        repo_id: `owner/name`.
        private: only its owners see it.

    Returns:
        The address of the repository.

    Raises:
        InputError: the Hub refuses, or cannot be reached; a file of the folder cannot be read; or
            the repository is there and public where it was to be private. Then nothing is sent.
    """
    api = HfApi()
    try:
        address = api.create_repo(repo_id, private=private or None, exist_ok=True)
        if private and not api.model_info(repo_id).private:
            raise InputError(
                "expected a private repository, found {repo_id} on the Hub and public; make it "
                "private there, or leave --private out",
                repo_id=repo_id,
            )
        api.upload_folder(repo_id=repo_id, folder_path=folder, commit_message=_MESSAGE)
    except (RuntimeError, OSError, *_OF_THE_HUB) as error:
        # The library puts what went wrong with a large file into a RuntimeError.
        cause = error.__cause__ if isinstance(error, RuntimeError) else error
        if isinstance(cause, _OF_THE_HUB) or type(cause).__module__ == "hf_xet":
            raise InputError(_why(cause, repo_id)) from error
        if isinstance(cause, OSError) and not is_full_disk(cause):
            place = cause.filename or folder
            raise InputError(
                "cannot read {where}: {reason}; nothing was sent to {repo_id}",
                where=place,
                reason=cause.strerror or cause,
                repo_id=repo_id,
            ) from error
        raise
    return str(address)


def _why(error: BaseException | None, repo_id: str) -> str:
    said = " ".join(str(error).split())[:300]
    status = error.response.status_code if isinstance(error, HfHubHTTPError) else None
    if status == 401:
        return (
            f"the Hub does not know the token ({said}); set HF_TOKEN to one of "
            "huggingface.co/settings/tokens, or run hf auth login"
        )
    if status == 403:
        return (
            f"the token has no right to write to {repo_id} ({said}); make one with that right, or "
            "name a repository of your own"
        )
    if isinstance(error, OfflineModeIsEnabled):
        return f"cannot push {repo_id}: HF_HUB_OFFLINE is set; unset it"
    if status is None:
        return (
            f"cannot reach the Hub to push {repo_id}: {said or type(error).__name__}; check the "
            "connection and give the command again"
        )
    return f"the Hub refuses {repo_id}: {said}"
