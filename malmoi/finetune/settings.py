"""The flags of a fine-tuning run and the keys of its recipes; nothing slow is imported here.

`python -m malmoi.finetune.settings` writes `recipes/default.toml`, which shows every key.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import tyro

from malmoi.errors import InputError
from malmoi.finetune.defaults import OPENAI_URL
from malmoi.inference.tasks import Task
from malmoi.settings import Range, as_toml, check_ranges, keys_by_flag, keys_of
from malmoi.text.reading.options import ReadingKeys

RECIPES = Path(__file__).with_name("recipes")

Epochs = Annotated[int | None, Range(1)]
Rate = Annotated[float | None, Range(0, 1, open="least")]
Fraction = Annotated[float, Range(0, 1, open="most")]
Count = Annotated[int, Range(1)]
Positive = Annotated[float, Range(0)]
# What becomes of labels with fewer texts than there are folds.
Rare = Literal["drop", "join", "keep"]


@dataclass(frozen=True, kw_only=True)
class DataKeys:
    """What the columns of the labelled texts mean."""

    label_separator: str | None = None
    """What stands between the labels of one cell, for `multi`, or several such with blanks between
    them (", ;"); auto: a comma. Lists, as JSON and Python write them, are read as they are."""
    group_column: str | None = None
    """Column of what belongs together (who wrote it, which thread): equal cells are in one fold."""
    ignore_ids: bool = False
    """Number the rows instead of taking the column `id`, which may then repeat itself."""
    skip_unlabelled: bool = False
    """Leave out rows whose label cell is empty, as in a file that is labelled in part."""
    own_test: bool = True
    """Rows with test in a column `split`, or files named test beside ones named train, are in no
    fold, but score the classifier; false: all rows are one pool."""
    test_after: str | None = None
    """Day such as 2024-03-01: later rows are the test instead."""
    date_column: str | None = None
    """Column of the day, for data.test_after; auto: date, created_at, 날짜, 작성일 and the like."""


@dataclass(frozen=True, kw_only=True)
class LabelledReadingKeys(ReadingKeys):
    """How the files are read, see `malmoi.text.reading.options.ReadOptions`."""

    skip_bad_rows: bool = False
    """Leave out rows that cannot be read, and say how many; by default they are an error."""


@dataclass(frozen=True, kw_only=True)
class StartKeys:
    """What the trainings start from, besides `--model`."""

    revision: str | None = None
    """Branch, tag or commit of a Hub id, such as refs/pr/1; by default main."""
    continue_from: str | None = None
    """Finished classifier to go on from, with its head, instead of `--model`: its labels are those
    of the data, by name. Texts that it has learnt are left out."""
    random_weights: bool = False
    """Start from random weights instead: the baseline that shows what pre-training adds."""


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How to fine-tune; the defaults follow ELECTRA and KcELECTRA."""

    epochs: Epochs = None
    """Passes over the training texts; auto: by their number, 10 up to 20,000, 4 of 50,000, 3 of
    more (ELECTRA paper, Appendix B, for its small data sets and the others)."""
    learning_rate: Rate = None
    """Highest learning rate; auto: 3e-4 for encoders up to 256 wide (ELECTRA paper, Appendix B,
    small) and 5e-5 for wider ones (KcELECTRA's fine-tuning of base)."""
    layer_decay: Rate = None
    """Learning rate of a layer as a fraction of that of the layer above; auto: 0.8 up to 256 wide
    (ELECTRA paper, Appendix B), else 1; 1 for random weights, which have nothing to keep."""
    warmup_fraction: Fraction = 0.1
    """Fraction of the steps in which the learning rate rises; it then falls linearly to 0 (ELECTRA
    paper, Appendix B)."""
    weight_decay: Positive = 0.01
    """AdamW's; not applied to LayerNorm and biases (BERT paper, Appendix A.2)."""
    batch_size: Count = 32
    """Texts in one optimizer step (ELECTRA paper, Appendix B)."""
    max_length: Annotated[int, Range(3)] = 128
    """Tokens of a text (or pair) that are learnt, [CLS] and [SEP] included, and no more than the
    encoder was trained on (ELECTRA's code, configure_finetuning.py). Longer texts are predicted in
    windows of as many; pairs are cut."""
    dropout: Fraction = 0.1
    """Fraction dropped in the encoder and before the classification head (ELECTRA paper, Appendix
    B)."""
    class_weights: Literal["none", "balanced"] = "none"
    """balanced: texts of rare labels count more in the loss, so that all labels count alike: N / (K
    n), as scikit-learn; `multi`: (N - n) / n."""
    focal_gamma: Annotated[float, Range(0, 10)] = 0.0
    """Above 0 the focal loss: texts that are easy already count less (Lin et al. 2017, "Focal Loss
    for Dense Object Detection", use 2)."""
    label_smoothing: Fraction = 0.0
    """Fraction of the target that is spread evenly over all labels (Szegedy et al. 2016,
    "Rethinking the Inception Architecture", use 0.1)."""
    subword_dropout: Fraction = 0.0
    """Above 0 every epoch cuts the words of a text anew, overlooking longer pieces with this
    probability (Hiraoka 2022, "MaxMatch-Dropout"; see few-texts.toml): few texts teach more.
    WordPiece only."""
    early_stopping_fraction: Annotated[float, Range(0, 0.5)] = 0.0
    """Above 0: this part of each training fold is kept out of training, scored after every epoch,
    and the weights of the best epoch are taken; the held-out fold decides nothing."""
    patience: Count = 2
    """Epochs without a better score after which early stopping ends a training (an assumption)."""
    gradient_checkpointing: bool = False
    """Compute activations twice instead of keeping them: less memory, about a third slower."""

    def check(self) -> None:
        """Refuse values that cannot train, and combinations that make no sense.

        Raises:
            InputError: naming the first bad value and what was expected.
        """
        check_ranges(self, "training")
        if self.focal_gamma and self.label_smoothing:
            raise InputError(
                "expected training.focal_gamma or training.label_smoothing, found both: one makes "
                "sure texts count less, the other makes no text sure; choose one"
            )
        if self.early_stopping_fraction and self.epochs == 1:
            raise InputError(
                "training.early_stopping_fraction chooses among epochs, found --epochs 1; raise "
                "--epochs"
            )


@dataclass(frozen=True, kw_only=True)
class LinearKeys:
    """The linear model beside the encoder, or with `--quick` alone; for one label a text."""

    enabled: bool = True
    """Fit it; its logits are added to those of the encoder, by weights learnt out of fold."""
    morphemes: bool = True
    """Morphemes by MeCab-ko may be a part of it, beside characters."""
    frozen_encoder: bool = True
    """With `--quick`: what encoders that are not trained make of a text may be parts, too."""


@dataclass(frozen=True, kw_only=True)
class MeasuringKeys:
    """What is measured, besides `--folds`, `--group-near-duplicates` and `--baselines`."""

    near_duplicate_threshold: Annotated[float, Range(0.7, 1)] = 0.8
    """With --group-near-duplicates: similarity (Jaccard) from which texts are near duplicates (Lee
    et al. 2022, "Deduplicating Training Data Makes Language Models Better")."""
    learning_curve: bool = False
    """Train the first fold on an eighth, a quarter and a half of its texts too (--task single)."""


@dataclass(frozen=True, kw_only=True)
class LlmSettings:
    """Which model to ask, at what price, how patiently; the key is read from OPENAI_API_KEY."""

    model: str | None = None
    """Model that the endpoint offers; without it no LLM is asked."""
    base_url: str = OPENAI_URL
    """Endpoint that speaks OpenAI's protocol; the texts are sent there."""
    input_dollars: Annotated[float | None, Range(0)] = None
    """Price of a million input tokens in dollars; 0 for a server of your own."""
    output_dollars: Annotated[float | None, Range(0)] = None
    """Price of a million output tokens in dollars; 0 for a server of your own."""
    won_per_dollar: Annotated[float | None, Range(0)] = None
    """Exchange rate; not needed where the prices are 0."""
    budget_won: Positive = 5000.0
    """Never spend more on this sample; answers of earlier runs count, calls of theirs that broke
    off do not."""
    sample: Count = 300
    """Texts to ask about, spread evenly over labels and folds."""
    prompt: Path | None = None
    """File with instructions for the model, {labels} stands for their names, or a task.toml with a
    prompt; auto: that of the task in --data, or of the project's task with these labels."""
    max_characters: Count = 4000
    """Longest part of a text that is sent; one very long text would use up the budget."""
    max_output_tokens: Count = 32
    """Longest answer; a label name takes up to about 10."""
    concurrency: Count = 4
    """Calls under way at a time."""
    timeout_seconds: Annotated[float, Range(0.001)] = 30.0
    """Seconds that one call may take."""
    retries: Annotated[int, Range(0)] = 5
    """Further tries of a call that failed."""
    first_wait_seconds: Positive = 1.0
    """Before the first further try; doubles each time."""
    cache: Path | None = None
    """Where answers are kept, to go on from; auto: llm-answers.jsonl in runs/finetune/."""

    def check(self) -> None:
        """Check what can be checked before anything is sent.

        Raises:
            InputError: a value is missing or out of its bounds.
        """
        check_ranges(self, "llm")
        if not self.model:
            raise InputError("expected a model to ask, found none; give --set llm.model=NAME")
        if not self.base_url.startswith(("http://", "https://")):
            raise InputError(
                "expected llm.base_url to begin with https://, found {base_url}",
                base_url=self.base_url,
            )
        if self.input_dollars is None or self.output_dollars is None:
            raise InputError(
                "expected the prices of a million tokens, found none; give --set "
                "llm.input_dollars=PRICE --set llm.output_dollars=PRICE (0 for a server of your "
                "own)"
            )
        if (self.input_dollars or self.output_dollars) and self.won_per_dollar is None:
            raise InputError(
                "expected an exchange rate to count won with, found none; give --set "
                "llm.won_per_dollar=RATE"
            )


@dataclass(frozen=True, kw_only=True)
class KfoldRecipe:
    """Every key of a recipe, by sections."""

    data: DataKeys = DataKeys()
    reading: LabelledReadingKeys = LabelledReadingKeys()
    start: StartKeys = StartKeys()
    training: TrainSettings = TrainSettings()
    linear: LinearKeys = LinearKeys()
    measuring: MeasuringKeys = MeasuringKeys()
    llm: LlmSettings = LlmSettings()


ABOUT_RECIPES = """Every key of a fine-tuning recipe with its default and where it is from, as
malmoi/finetune/settings.py declares them. Nothing has to be given: without --recipe it is the same.
For a recipe of your own, write a file with the keys that differ and give it as --recipe FILE.toml;
extends = "few-texts" in its first line takes the rest from another one. One value: --set
training.dropout=0.2. "auto" and "none" leave open what may be left open."""


@dataclass(kw_only=True)
class KfoldSettings:
    """What to train, on what, how often."""

    SCHEMA: ClassVar[type] = KfoldRecipe
    KEYS: ClassVar[dict[str, str]] = keys_by_flag(
        KfoldRecipe, {key: key for key in keys_of(KfoldRecipe)}
    )
    KEYS_WITH_FLAG: ClassVar[tuple[str, ...]] = (
        *("training.epochs", "training.learning_rate"),
        *("training.batch_size", "training.max_length"),
    )
    HELP_GROUPS: ClassVar[dict[str, tuple[str, ...]]] = {
        "data": ("labels", "data", "task", "text_column", "label_column", "pair_column", "test"),
        "training": (
            "model",
            "epochs",
            "learning_rate",
            "batch_size",
            "max_length",
            "quick",
            "recipe",
            "set",
        ),
        "measuring": ("folds", "seeds", "rare", "group_near_duplicates", "baselines"),
        "run": ("output", "jobs", "device", "seed"),
    }
    """See `malmoi.flags.parse_flags`."""

    labels: str | None = None
    """Label names with commas between them; they must be those of the data. By default those of its
    task.toml, else all that --data has."""
    data: str | None = None
    """File or folder of labelled texts; a task.toml or a folder with one, which says labels and
    columns; or the app's label database: a SQLite file or a URL, with #PROJECT behind it where it
    holds several. By default the project's texts with the labels of --labels."""
    task: Task = "single"
    """`single`: one label a text. `multi`: any number of labels, each with a threshold that is
    chosen on texts kept out of training. `pair`: one label for two texts. `value`: a
    number, such as stars. `pair-regression`: a number for two texts."""
    text_column: str | None = None
    """Column that holds the text, by name or number; found by its name and cells when not given."""
    label_column: str | None = None
    """Column of the labels, if it has an unusual name. For `multi` also columns of 0 and 1, each
    a label, with commas between their names; without a label column they are found."""
    pair_column: str | None = None
    """Column of the second text of a pair; by default sentence2, question2 or pair."""
    test: Path | None = None
    """File or folder of labelled texts that are in no fold: they score the finished classifier.
    Texts that stand there are left out of --data."""
    model: str | None = None
    """Encoder: directory, pre-training run or Hub id; by default the newest finished run,
    else the released one that suits the number of texts. Of a finished classifier the head is left
    out."""
    # These hold before what a recipe says.
    epochs: Epochs = None
    learning_rate: Rate = None
    batch_size: Annotated[int | None, Range(1)] = None
    max_length: Annotated[int | None, Range(3)] = None
    quick: bool = False
    """Seconds instead of minutes: fit the linear model alone, and train no encoder."""
    recipe: str | None = None
    """Further settings: a recipe's name (`default` shows every key, `few-texts` is for a few
    thousand texts) or a TOML file of your own."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """One key of a recipe, such as training.subword_dropout=0.3; may be given again for others."""
    folds: Annotated[int, Range(2)] = 5
    """Parts that the texts are split into; each is predicted by a model trained on the others."""
    seeds: Count = 1
    """Repeat everything with so many seeds: --seed, --seed + 1, ..."""
    rare: Rare | None = None
    """What becomes of labels with fewer texts than folds: `drop` leaves out their texts, `join`
    makes them one label 기타, `keep` learns them, measured in some folds only."""
    group_near_duplicates: bool = False
    """Keep texts that nearly equal each other in one fold (MinHash of character 3-grams)."""
    baselines: bool = False
    """Measure simpler classifiers, the same encoder from random weights and, with --recipe llm, a
    chat model in the same folds (--task single)."""
    output: Path | None = None
    """Folder for the run; by default runs/finetune/ with the data's name and the time."""
    jobs: Annotated[int | None, Range(1)] = None
    """Trainings side by side, in so many processes; the threads, or the GPUs, are shared out. By
    default as many as there are threads and as half the memory holds, on a GPU one. The number of
    threads may change the last digits of the scores."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N; auto takes a GPU if there is one."""
    seed: Annotated[int, Range(0, 2**32 - 1)] = 42
    """Seed of folds, new weights, dropout and the order of texts."""


if __name__ == "__main__":
    (RECIPES / "default.toml").write_text(as_toml(KfoldRecipe, ABOUT_RECIPES), encoding="utf-8")
