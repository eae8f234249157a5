"""The flags of a fine-tuning run and the keys of its recipes; nothing slow is imported here."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import tyro

from malmoi.config import (
    Given,
    fill,
    keys_by_flag,
    keys_of,
    read_assignments,
    read_recipe,
)
from malmoi.errors import InputError
from malmoi.finetune.data.row_format import RowFormat
from malmoi.finetune.data.source import DataSource, find_data
from malmoi.inference.tasks import Task
from malmoi.labels.names import parse_labels
from malmoi.model_folders import check_source, is_hub_id
from malmoi.text.reading.options import ReadingKeys, ReadOptions

RECIPES = Path(__file__).with_name("recipes")

OPENAI_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, kw_only=True)
class DataKeys:
    """What the columns of the labelled texts mean."""

    label_separator: str | None = None
    """What stands between the labels of one cell, for `multi`; by default a comma. Lists, as JSON
    and Python write them, are read as they are."""
    group_column: str | None = None
    """Column of what belongs together (who wrote it, which thread): equal cells are in one fold."""
    ignore_ids: bool = False
    """Number the rows instead of taking the column `id`, which may then repeat itself."""
    skip_unlabelled: bool = False
    """Leave out rows whose label cell is empty, as in a file that is labelled in part."""


@dataclass(frozen=True, kw_only=True)
class LabelledReadingKeys(ReadingKeys):
    """How the files are read, see `malmoi.text.reading.options.ReadOptions`."""

    skip_bad_rows: bool = False


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

    epochs: int | None = None
    """Passes over the training texts; by default fewer, the more there are: see
    `malmoi.finetune.plan.epochs_for`."""
    learning_rate: float | None = None
    """Highest learning rate; by default 3e-4 for encoders up to 256 wide (ELECTRA paper,
    Appendix B, small) and 5e-5 for wider ones (KcELECTRA's fine-tuning of base)."""
    layer_decay: float | None = None
    """Learning rate of a layer as a fraction of that of the layer above; by default 0.8 up to 256
    wide (ELECTRA paper, Appendix B), else 1; 1 for random weights, which have nothing to keep."""
    warmup_fraction: float = 0.1
    """Fraction of the steps in which the learning rate rises; it then falls linearly to 0."""
    weight_decay: float = 0.01
    """AdamW's; not applied to LayerNorm and biases."""
    batch_size: int = 32
    """Texts in one optimizer step."""
    max_length: int = 128
    """Tokens of a text (or pair) that are learnt, [CLS] and [SEP] included. Longer texts are
    predicted in windows of as many; pairs are cut."""
    dropout: float = 0.1
    """Fraction dropped in the encoder and before the classification head."""
    class_weights: Literal["none", "balanced"] = "none"
    """`balanced`: texts of rare labels count more in the loss, so that all labels count alike."""
    focal_gamma: float = 0.0
    """Above 0 the focal loss: texts that are easy already count less (Lin et al. 2017 use 2)."""
    label_smoothing: float = 0.0
    """Fraction of the target that is spread evenly over all labels."""
    subword_dropout: float = 0.0
    """Above 0 every epoch cuts the words of a text anew, overlooking longer pieces with this
    probability (MaxMatch-Dropout, Hiraoka 2022): few texts teach more. WordPiece only."""
    early_stopping_fraction: float = 0.0
    """Above 0: this part of each training fold is kept out of training, scored after every epoch,
    and the weights of the best epoch are taken; the held-out fold decides nothing."""
    patience: int = 2
    """Epochs without a better score after which early stopping ends a training."""
    gradient_checkpointing: bool = False
    """Compute activations twice instead of keeping them: less memory, about a third slower."""

    def check(self) -> None:
        """Refuse values that cannot train, and combinations that make no sense.

        Raises:
            InputError: naming the first bad value and what was expected.
        """
        bounds: list[tuple[str, bool, str]] = [
            ("epochs", self.epochs is None or self.epochs >= 1, "at least 1"),
            ("learning_rate", _fraction(self.learning_rate), "above 0 and at most 1"),
            ("layer_decay", _fraction(self.layer_decay), "above 0 and at most 1"),
            ("warmup_fraction", 0 <= self.warmup_fraction < 1, "from 0 to below 1"),
            ("weight_decay", 0 <= self.weight_decay < math.inf, "0 or more"),
            ("batch_size", self.batch_size >= 1, "at least 1"),
            ("max_length", self.max_length >= 3, "at least 3 tokens"),
            ("dropout", 0 <= self.dropout < 1, "from 0 to below 1"),
            ("focal_gamma", 0 <= self.focal_gamma <= 10, "from 0 to 10"),
            ("label_smoothing", 0 <= self.label_smoothing < 1, "from 0 to below 1"),
            ("subword_dropout", 0 <= self.subword_dropout < 1, "from 0 to below 1"),
            ("early_stopping_fraction", 0 <= self.early_stopping_fraction <= 0.5, "from 0 to 0.5"),
            ("patience", self.patience >= 1, "at least 1 epoch"),
        ]
        for name, good, expected in bounds:
            if not good:
                key = f"training.{name}"
                raise InputError(
                    f"expected {FLAG_OF_KEY.get(key, key)} {expected}, found {getattr(self, name)}"
                )
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

    def check_task(self, task: Task) -> None:
        """Refuse what does not go with the task.

        Raises:
            InputError: class weights, focal loss or label smoothing for a regression.
        """
        if task != "pair-regression":
            return
        for name, used in (
            ("class_weights", self.class_weights != "none"),
            ("focal_gamma", self.focal_gamma > 0),
            ("label_smoothing", self.label_smoothing > 0),
        ):
            if used:
                raise InputError(
                    f"training.{name} is about labels, and --task pair-regression has values; "
                    "leave it out"
                )


@dataclass(frozen=True, kw_only=True)
class LinearKeys:
    """The linear model beside the encoder, or with `--quick` alone; for one label a text."""

    enabled: bool = True
    """Fit it; its logits are added to those of the encoder, by weights learnt out of fold."""
    kiwi: bool = True
    """Kiwi's morphemes and word vectors may be parts of it, where they help."""
    frozen_encoder: bool = True
    """With `--quick`: what an encoder that is not trained makes of a text may be a part, too."""


@dataclass(frozen=True, kw_only=True)
class MeasuringKeys:
    """How the folds are made, besides `--folds` and `--group-near-duplicates`."""

    near_duplicate_threshold: float = 0.8
    """Similarity (Jaccard) from which texts are near duplicates, 0.7 to 1."""


@dataclass(frozen=True, kw_only=True)
class LlmSettings:
    """Which model to ask, at what price, how patiently; the key is read from OPENAI_API_KEY."""

    model: str | None = None
    """Model that the endpoint offers; without it no LLM is asked."""
    base_url: str = OPENAI_URL
    """Endpoint that speaks OpenAI's protocol; the texts are sent there."""
    input_dollars: float | None = None
    """Price of a million input tokens in dollars; 0 for a server of your own."""
    output_dollars: float | None = None
    """Price of a million output tokens in dollars; 0 for a server of your own."""
    won_per_dollar: float | None = None
    """Exchange rate; not needed where the prices are 0."""
    budget_won: float = 5000.0
    """Never spend more on this sample; answers of earlier runs count, calls of theirs that broke
    off do not."""
    sample: int = 300
    """Texts to ask about, spread evenly over labels and folds."""
    prompt: Path | None = None
    """File with instructions for the model, {labels} stands for their names, or a task.toml with a
    prompt; by default that of the task in --data, or of the project's task with these labels."""
    max_characters: int = 4000
    """Longest part of a text that is sent; one very long text would use up the budget."""
    max_output_tokens: int = 32
    """Longest answer; a label name takes up to about 10."""
    concurrency: int = 4
    """Calls under way at a time."""
    timeout_seconds: float = 30.0
    """Seconds that one call may take."""
    retries: int = 5
    """Further tries of a call that failed."""
    first_wait_seconds: float = 1.0
    """Before the first further try; doubles each time."""
    cache: Path | None = None
    """Where answers are kept, to go on from; by default llm-answers.jsonl in runs/finetune/."""

    def check(self) -> None:
        """Check what can be checked before anything is sent.

        Raises:
            InputError: a value is missing or out of its bounds.
        """
        if not self.model:
            raise InputError("expected a model to ask, found none; give --set llm.model=NAME")
        if not self.base_url.startswith(("http://", "https://")):
            raise InputError(f"expected llm.base_url to begin with https://, found {self.base_url}")
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
        bounds: dict[str, tuple[float, float]] = {
            "input_dollars": (self.input_dollars, 0),
            "output_dollars": (self.output_dollars, 0),
            "won_per_dollar": (self.won_per_dollar or 0, 0),
            "budget_won": (self.budget_won, 0),
            "sample": (self.sample, 1),
            "max_characters": (self.max_characters, 1),
            "max_output_tokens": (self.max_output_tokens, 1),
            "concurrency": (self.concurrency, 1),
            "timeout_seconds": (self.timeout_seconds, 0.001),
            "retries": (self.retries, 0),
            "first_wait_seconds": (self.first_wait_seconds, 0),
        }
        for name, (value, least) in bounds.items():
            if not value >= least:  # nan, too
                raise InputError(f"expected llm.{name} of at least {least:g}, found {value:g}")


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


# Keys that have a flag, too, which holds before what a recipe says.
FLAG_OF_KEY = {
    "training.epochs": "--epochs",
    "training.learning_rate": "--learning-rate",
    "training.batch_size": "--batch-size",
    "training.max_length": "--max-length",
}


@dataclass(kw_only=True)
class KfoldSettings:
    """What to train, on what, how often."""

    SCHEMA: ClassVar[type] = KfoldRecipe
    KEYS: ClassVar[dict[str, str]] = keys_by_flag(
        KfoldRecipe, {key: key for key in keys_of(KfoldRecipe)}
    )
    HELP_GROUPS: ClassVar[dict[str, tuple[str, ...]]] = {
        "data": ("labels", "data", "task", "text_column", "label_column", "pair_column"),
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
        "measuring": ("folds", "seeds", "group_near_duplicates", "baselines", "learning_curve"),
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
    chosen on texts kept out of training. `pair`: one label for two texts. `pair-regression`: a
    number for two texts."""
    text_column: str | None = None
    """Column that holds the text, by name or number; found by its name and cells when not given."""
    label_column: str | None = None
    """Column of the labels, if it has an unusual name. For `multi` also columns of 0 and 1, each
    a label, with commas between their names; without a label column they are found."""
    pair_column: str | None = None
    """Column of the second text of a pair; by default sentence2, question2 or pair."""
    model: str | None = None
    """Encoder: directory, pre-training run or Hub id; by default the newest finished run,
    else the smallest released one. Of a finished classifier the head is left out."""
    epochs: int | None = None
    """Passes over the training texts; by default by their number (10 up to 20,000, 4 of
    50,000, 3 of more), or what the recipe says."""
    learning_rate: float | None = None
    """Highest learning rate; by default 3e-4 for encoders up to 256 wide and 5e-5 for wider ones,
    or what the recipe says."""
    batch_size: int | None = None
    """Texts in one optimizer step; by default 32, or what the recipe says."""
    max_length: int | None = None
    """Tokens of a text (or pair) that are learnt, [CLS] and [SEP] included; by default 128, or what
    the recipe says, and no more than the encoder was trained on. Longer texts are predicted in
    windows of as many."""
    quick: bool = False
    """Seconds instead of minutes: fit the linear model alone, and train no encoder."""
    recipe: str | None = None
    """Further settings: a recipe's name (`default` shows every key, `few-texts` is for a few
    thousand texts) or a TOML file of your own."""
    set: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """One key of a recipe, such as training.subword_dropout=0.3; may be given again for others."""
    folds: int = 5
    """Parts that the texts are split into; each is predicted by a model trained on the others."""
    seeds: int = 1
    """Repeat everything with so many seeds: --seed, --seed + 1, ..."""
    group_near_duplicates: bool = False
    """Keep texts that nearly equal each other in one fold (MinHash of character 3-grams)."""
    baselines: bool = False
    """Measure simpler classifiers, the same encoder from random weights and, with --recipe llm, a
    chat model in the same folds (--task single)."""
    learning_curve: bool = False
    """Train the first fold on an eighth, a quarter and a half of its texts too (--task single)."""
    output: Path | None = None
    """Folder for the run; by default runs/finetune/ with the data's name and the time."""
    jobs: int | None = None
    """Trainings side by side, in so many processes; the threads, or the GPUs, are shared out. By
    default as many as there are threads and as half the memory holds, on a GPU one. The number of
    threads may change the last digits of the scores."""
    device: str = "auto"
    """auto, cpu, cuda or cuda:N; auto takes a GPU if there is one."""
    seed: int = 42
    """Seed of folds, new weights, dropout and the order of texts."""

    def given(self) -> Given[KfoldRecipe]:
        """The keys as `--recipe`, `--set` and the flags that are keys give them.

        Raises:
            InputError: no such recipe or key, a value of another type, or one that is given twice.
        """
        recipe = {} if self.recipe is None else read_recipe(self.recipe, RECIPES)
        return fill(KfoldRecipe, recipe, self._by_hand(), f"--recipe {self.recipe}")

    def _by_hand(self) -> Mapping[str, Any]:
        values = read_assignments(self.set)
        for key, flag in FLAG_OF_KEY.items():
            value = getattr(self, key.partition(".")[2])
            if value is None:
                continue
            if key in values:
                raise InputError(f"{flag} and --set {key} say the same; leave one out")
            values[key] = value
        return values

    def label_names(self) -> list[str] | None:
        """The names in `--labels`; None without it.

        Raises:
            InputError: as `malmoi.labels.names.parse_labels`.
        """
        return None if self.labels is None else parse_labels(self.labels)

    def data_source(self) -> DataSource:
        """What to read, see `malmoi.finetune.data.source.find_data`."""
        has_labels = self.task != "pair-regression"
        return find_data(self.data, self.label_names(), has_labels=has_labels)

    def reading(self, keys: LabelledReadingKeys) -> ReadOptions:
        """How the files are read."""
        return keys.options(text_column=self.text_column, skip_bad_rows=keys.skip_bad_rows)

    def check(self) -> Given[KfoldRecipe]:
        """Refuse what cannot be run and combinations that make no sense; opens no data.

        Returns:
            The keys, see `given`.

        Raises:
            InputError: naming the first bad value and what was expected.
        """
        given = self.given()
        given.values.training.check()
        given.values.training.check_task(self.task)
        self._check_start(given.values.start)
        self._check_numbers()
        self._check_effects(given)
        self._check_columns(given.values)
        self._check_comparisons(given)
        self._check_linear(given)
        return given

    def check_places(self, start: StartKeys) -> None:
        """Raise InputError for the first path where nothing is; imports nothing that takes long."""
        self.data_source().check()
        for model in (self.model, start.continue_from):
            if model is not None and not Path(model).exists():
                check_source(model)

    def _check_start(self, start: StartKeys) -> None:
        source = start.continue_from or self.model or ""
        if start.revision is not None and not is_hub_id(source):
            raise InputError(
                f"start.revision is of a Hub id in --model, found {source or 'none'}; leave it out"
            )
        if start.continue_from is not None and (self.model is not None or start.random_weights):
            other = "--model" if self.model is not None else "start.random_weights"
            raise InputError(
                f"start.continue_from names what to begin with, and so does {other}; leave one out"
            )

    def _check_numbers(self) -> None:
        for flag, value, least in (
            ("--folds", self.folds, 2),
            ("--seeds", self.seeds, 1),
            ("--jobs", self.jobs, 1),
        ):
            if value is not None and value < least:
                raise InputError(f"expected {flag} at least {least}, found {value}")
        if not 0 <= self.seed < 2**32:
            raise InputError(f"expected --seed from 0 to 4294967295, found {self.seed}")
        if self.seed + self.seeds > 2**32:
            raise InputError(f"expected --seed + --seeds up to 4294967296, found {self.seed} + ...")

    def _check_effects(self, given: Given[KfoldRecipe]) -> None:
        """Refuse what was set by hand and changes nothing; recipes may say more than is used."""
        if (
            "training.patience" in given.by_hand
            and not given.values.training.early_stopping_fraction
        ):
            raise InputError(
                "training.patience needs texts to score after every epoch; add --set "
                "training.early_stopping_fraction=0.1 or leave it out"
            )
        if "measuring.near_duplicate_threshold" in given.by_hand and not self.group_near_duplicates:
            raise InputError(
                "measuring.near_duplicate_threshold says what --group-near-duplicates groups; add "
                "that or leave it out"
            )
        asked = any(key.startswith("llm.") for key in given.by_hand)
        if asked and given.values.llm.model is None:
            raise InputError(
                "llm.model names the chat model that the keys of llm are for; add --set "
                "llm.model=NAME"
            )

    def _check_columns(self, values: KfoldRecipe) -> None:
        # Refuses a second text where the task has one.
        RowFormat(
            task=self.task,
            reading=self.reading(values.reading),
            pair_column=self.pair_column,
            group_column=values.data.group_column,
        )
        separator = values.data.label_separator
        if separator is not None and self.task != "multi":
            raise InputError(
                f"data.label_separator is for several labels in a cell, and --task {self.task} has "
                "one; leave it out or give --task multi"
            )
        if separator is not None and not separator.strip(" "):
            raise InputError("expected characters other than blanks in data.label_separator")
        if self.task == "pair-regression" and self.labels is not None:
            raise InputError(
                "--labels names labels, and --task pair-regression has values; leave it out"
            )
        if self.data is None and (self.task != "single" or self.labels is None):
            raise InputError(
                "expected labelled texts, found neither --data nor --labels of a sample that the "
                "project carries; give --data"
                if self.labels is None
                else f"--task {self.task} has no sample in the project; give --data"
            )

    def _check_linear(self, given: Given[KfoldRecipe]) -> None:
        keys = given.values.linear
        if self.quick:
            self._check_quick(given)
        elif "linear.frozen_encoder" in given.by_hand:
            raise InputError("linear.frozen_encoder is for --quick; add that or leave it out")
        elif not keys.enabled and "linear.kiwi" in given.by_hand:
            raise InputError("linear.kiwi is a part of what linear.enabled=false leaves out")

    def _check_quick(self, given: Given[KfoldRecipe]) -> None:
        if self.task != "single":
            raise InputError(
                f"--quick is for one label a text, and --task is {self.task}; leave it out"
            )
        if not given.values.linear.enabled:
            raise InputError(
                "--quick fits the linear model, and linear.enabled=false leaves it out"
            )
        of_encoder = [key for key in given.by_hand if key.startswith("training.")]
        starts = ("start.continue_from", "start.random_weights")
        of_encoder += [key for key in starts if key in given.by_hand]
        flags = (
            ("--seeds", self.seeds > 1),
            ("--jobs", self.jobs is not None),
            ("--baselines", self.baselines),
            ("--learning-curve", self.learning_curve),
        )
        named = [FLAG_OF_KEY.get(key, f"--set {key}") for key in of_encoder]
        named += [flag for flag, given_ in flags if given_]
        if named:
            raise InputError(
                f"--quick trains no encoder, and {named[0]} is about its training; leave one out"
            )

    def _check_comparisons(self, given: Given[KfoldRecipe]) -> None:
        for flag, wanted in (
            ("--baselines", self.baselines),
            ("--learning-curve", self.learning_curve),
        ):
            if wanted and self.task != "single":
                raise InputError(
                    f"{flag} is for one label a text, and --task is {self.task}; leave it out"
                )
        if given.values.llm.model is not None:
            if not self.baselines:
                raise InputError("llm.model is one of the baselines; add --baselines")
            given.values.llm.check()


def _fraction(value: float | None) -> bool:
    return value is None or 0 < value <= 1
