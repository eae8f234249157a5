"""The flags of a pre-training run; what holds where one is left out is in `defaults`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import tyro

from malmoi.pretrain.config.defaults import PresetName
from malmoi.pretrain.config.schema import OTHER_NAMES, PretrainKeys
from malmoi.settings import Precision, Range, keys_by_flag
from malmoi.tokenizer.kinds import MAX_VOCABULARY

RECIPES = Path(__file__).parents[1] / "recipes"


@dataclass(kw_only=True)
class PretrainSettings:
    """What to train on, how large a model, for how long; None where nothing is given."""

    HELP_GROUPS: ClassVar[dict[str, tuple[str, ...]]] = {
        "data": (
            *("corpus", "text_column", "skip_bad_rows"),
            *("tokenizer", "vocab_size", "max_length"),
        ),
        "length": ("max_minutes", "max_tokens", "max_steps", "epochs"),
        "network": ("preset", "init", "revision", "recipe", "set"),
        "training": ("learning_rate", "tokens_per_batch", "precision", "seed", "device"),
        "run": ("output", "resume"),
    }
    """See `malmoi.flags.parse_flags`."""
    SCHEMA: ClassVar[type] = PretrainKeys
    KEYS: ClassVar[dict[str, str]] = keys_by_flag(PretrainKeys, OTHER_NAMES)

    corpus: Path
    """File or folder of texts (.txt .csv .tsv .jsonl .parquet .xlsx, plain, .gz or .zst), or a
    folder of runs/cache/tokenized: all that another machine needs to train, without the texts."""
    text_column: str | None = None
    """Column that holds the text, by name or number; found by its name and cells when not given."""
    skip_bad_rows: bool = False
    """Leave out rows that cannot be read, and say how many; by default they are an error."""
    tokenizer: Path | None = None
    """Tokenizer directory; one is trained on the corpus when not given."""
    vocab_size: Annotated[int | None, Range(1_024, MAX_VOCABULARY)] = None
    """Entries of the tokenizer that is trained, rounded up to a multiple of 128; by default
    32,000."""
    max_length: Annotated[int | None, Range(8, 512)] = None
    """Longest sequence in tokens, [CLS] and [SEP] included; longer texts are cut in pieces. By
    default 128."""
    max_steps: Annotated[int | None, Range(0)] = None
    """Stop after this many optimizer steps; 0 writes the untrained starting weights."""
    max_minutes: Annotated[float | None, Range(0.01)] = None
    """Stop after this many minutes of training (without preparing the corpus and compiling). The
    clock sets the learning rate then, so no second run, resumed or not, is the same to the bit."""
    max_tokens: Annotated[float | None, Range(1)] = None
    """Stop after this many tokens, padding not counted; 20e6 is 20 million."""
    epochs: Annotated[int | None, Range(1)] = None
    """Passes over the corpus when no --max-... is given; by default 10."""
    preset: PresetName | None = None
    """tiny: 4 layers x 256; small: the paper's ELECTRA-small, 12 x 256; base: 12 x 768. By
    default tiny. With --init DIRECTORY the networks have the checkpoint's sizes, and this says
    learning rate and batch only; by default those that suit it."""
    init: str | None = None
    """random; word-vectors (default): word embeddings from counts of which word pieces occur
    together in the corpus; or the directory or name of a run or a released checkpoint to continue
    from, or the Hub id of an ELECTRA discriminator in safetensors (its networks and tokenizer; a
    generator that is needed and not there begins new). A directory has to stay where it is until
    the run is finished: --resume reads its shape again."""
    revision: str | None = None
    """Branch, tag or commit of the Hub id in --init, such as refs/pr/1; by default main."""
    recipe: str | None = None
    """What and how the run learns: a recipe's name (default, which explains every key, electra,
    bert, few-tokens, gdes, spans, two-stage, ...) or a TOML file of your own. By default a
    generator and a discriminator learn together, from noise at first; where --set asks for another
    objective or schedule: rtd."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """One key of a recipe, such as objective.temperature=1.2, which holds before what the recipe
    says; may be given again for another."""
    learning_rate: Annotated[float | None, Range(1e-9, 1)] = None
    """Peak learning rate; default by preset."""
    tokens_per_batch: int | None = None
    """Tokens in one optimizer step, padding included; default by preset."""
    precision: Precision = "auto"
    """Number format of matrix products; weights and optimizer state are fp32 in both. auto: the
    faster one of this device (docs/performance.md); a resumed run keeps what it began with."""
    seed: Annotated[int | None, Range(0, 2**32 - 1)] = None
    """Seed of weights, order, masks and samples; by default 42."""
    device: str = "auto"
    """auto, cpu or cuda."""
    output: Path | None = None
    """Directory of the run; default runs/pretrain/NAME with the corpus, preset and time."""
    resume: bool = False
    """Go on from the last checkpoint of --output, or of the newest unfinished run that fits what
    is given: weights to the bit as if it had never stopped, save with --max-minutes. Its length
    and learning rates may be given anew, and all of [execution]; what is left out is as it was.
    The first row of metrics.jsonl after it is of the steps since the checkpoint."""
