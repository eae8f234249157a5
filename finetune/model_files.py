"""Checks of a model directory or Hub id before and while transformers loads it.

Weights are safetensors only, nothing is unpickled, remote code is never run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from corpora.command_line import is_full_disk
from corpora.errors import InputError
from finetune.fitness import position_count
from finetune.model_places import check_source
from pretrain.hub import hub_directory
from pretrain.saving import quiet_transformers
from tokenizer.training import refuse_taking_apart
from tokenizer.typed_tokens import take_typed_tokens_as_text

_NO_LENGTH = 1 << 31


@contextmanager
def loading(source: str, what: str) -> Iterator[None]:
    """Turn what transformers raises for a bad or unreachable `source` into one InputError."""
    try:
        with quiet_transformers():
            yield
    except InputError:
        raise
    except SafetensorError as error:
        raise InputError(
            f"the weights in {source} are damaged ({_one_line(error)}); copy or train them again"
        ) from error
    except MemoryError:
        raise
    except Exception as error:
        # Of a damaged file transformers lets out nearly everything: AttributeError,
        # ZeroDivisionError, dataclass errors, and tokenizers a bare Exception.
        if isinstance(error, OSError) and is_full_disk(error):
            raise  # A full disk while downloading: the command line has its own line for it.
        said = _one_line(error)
        if not isinstance(error, OSError | ValueError | RuntimeError):
            said = f"{type(error).__name__}: {said}"  # such as 'x' of a KeyError
        raise InputError(f"cannot load {what} of {source}: {said}") from error


def local_source(source: str | Path, revision: str | None = None) -> str:
    """`check_source`, and of a Hub id the folder in the cache, downloaded if need be.

    Raises:
        InputError: as `check_source` and `hub_directory`.
    """
    found = check_source(source)
    if Path(found).is_dir():
        return found
    return str(hub_directory(found, revision, "--model"))


def load_tokenizer(source: str) -> PreTrainedTokenizerBase:
    """The stock tokenizer beside a model.

    Raises:
        InputError: there is none, it cannot be read, or takes its own Hangul entries apart.
    """
    with loading(source, "the tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise InputError(f"{source} has no tokenizer (its vocabulary is empty)")
    if tokenizer.pad_token_id is None:
        raise InputError(f"the tokenizer of {source} has no padding token, which batches need")
    refuse_taking_apart(tokenizer, source)
    take_typed_tokens_as_text(tokenizer)
    return tokenizer


def check_vocabulary(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, source: str
) -> None:
    """Refuse a tokenizer that can give the model an id it has no embedding for.

    Raises:
        InputError: with both sizes.
    """
    known = int(model.get_input_embeddings().num_embeddings)  # type: ignore[arg-type]
    largest = max(tokenizer.get_vocab().values())
    if largest >= known:
        raise InputError(
            f"tokenizer and model of {source} do not belong together: the tokenizer has ids up to "
            f"{largest}, the model {known} embeddings"
        )


def longest_input(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Most tokens of one text, [CLS] and [SEP] included, that model and tokenizer both allow.

    512, as BERT has, where neither says.
    """
    stated = [position_count(model), tokenizer.model_max_length]
    # transformers fills in 1e30 where there is none.
    bounds = [int(length) for length in stated if length and 0 < length < _NO_LENGTH]
    return min(bounds, default=512)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."
