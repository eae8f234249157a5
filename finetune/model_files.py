"""Checks of a model directory or Hub id before and while transformers loads it.

Weights are safetensors only, nothing is unpickled, remote code is never run.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from safetensors import SafetensorError
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from corpora.command_line import is_full_disk
from corpora.errors import InputError
from pretrain.saving import quiet_transformers
from tokenizer.training import refuse_taking_apart


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
    """Most tokens of one text, [CLS] and [SEP] included, that model and tokenizer both allow."""
    positions = getattr(model.config, "max_position_embeddings", None) or 512
    return int(min(tokenizer.model_max_length, positions))


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."
