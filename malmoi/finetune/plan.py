"""What a fine-tuning run will do, every number decided once; written into `report.json`."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from malmoi.finetune.defaults import THRESHOLD_FRACTION, default_epochs, default_rates
from malmoi.finetune.run_config import KfoldConfig
from malmoi.finetune.settings import TrainSettings
from malmoi.inference.tasks import Task

# What a training process takes, with room: 1.8 GiB measured with 7 million parameters, 2.3 with 14,
# 5.0 with 97 (docs/performance.md).
_PROCESS_BYTES, _PARAMETER_BYTES = 2 * 2**30, 36
# Steps in all from which the seconds that processes take to start are won back (assumption).
_WORTH_STARTING = 600


@dataclass(frozen=True, kw_only=True)
class DataPlan:
    """What is learned.

    Attributes:
        path: of the labelled texts.
        sha256: of the cleaned texts and their labels, in order.
        texts: how many, or how many pairs.
        task: what the labels are.
        labels: names in the order of their ids; `REGRESSION_LABELS` for a regression.
    """

    path: str
    sha256: str
    texts: int
    task: Task
    labels: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FoldsPlan:
    """How the texts are split.

    Attributes:
        folds: parts; each is predicted by a model trained on the others.
        seeds: of the splits and trainings, one repetition each; the first is also that of the
            last training, on all texts.
        near_duplicate_threshold: Jaccard similarity from which texts stay together; None where
            near duplicates may part.
        group_column: whose equal cells stay together; None for no such column.
    """

    folds: int
    seeds: tuple[int, ...]
    near_duplicate_threshold: float | None
    group_column: str | None


@dataclass(frozen=True, kw_only=True)
class EncoderPlan:
    """What every training starts from.

    Attributes:
        model: its directory, or Hub id and commit.
        random_weights: whether only its shape is taken.
        head: `new`, or `kept` of a finished classifier.
    """

    model: str
    random_weights: bool
    head: Literal["new", "kept"]


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """How every training goes; the fields of `TrainSettings` without what was left open.

    Attributes:
        learning_rate: the highest, of the head.
        layer_decay: of a layer's learning rate against that of the layer above.
        max_length: tokens of a text that are learnt, and of a window that is predicted; at most
            what the encoder was trained on, as its tokenizer says, and has positions for.
        dev_fraction: of the training texts, kept out of training to choose the best epoch, the
            thresholds of `multi`, or both; 0 where nothing is chosen.
    """

    epochs: int
    learning_rate: float
    layer_decay: float
    warmup_fraction: float
    weight_decay: float
    batch_size: int
    max_length: int
    dropout: float
    class_weights: Literal["none", "balanced"]
    focal_gamma: float
    label_smoothing: float
    subword_dropout: float
    early_stopping_fraction: float
    patience: int
    dev_fraction: float
    gradient_checkpointing: bool


@dataclass(frozen=True, kw_only=True)
class LinearPlan:
    """The linear model beside the encoder.

    Attributes:
        enabled: it is fitted; only of one label a text.
        morphemes: they may be a part of it, too.
        balanced: texts of rare labels count more, as in the encoder's loss.
    """

    enabled: bool
    morphemes: bool
    balanced: bool


@dataclass(frozen=True, kw_only=True)
class ComparisonPlan:
    """What is measured beside the folds.

    Attributes:
        baselines: simpler classifiers and the same encoder from random weights.
        chat_model: asked as one of the baselines; None where none is.
        learning_curve: the first fold with fewer texts.
    """

    baselines: bool
    chat_model: str | None
    learning_curve: bool


@dataclass(frozen=True, kw_only=True)
class KfoldExecution:
    """Where the trainings run; `jobs` may differ when a run goes on.

    Attributes:
        device: its type, `cpu` or `cuda`.
        jobs: trainings side by side.
    """

    device: str
    jobs: int


@dataclass(frozen=True, kw_only=True)
class KfoldPlan:
    """A whole run: k-fold, then once more on all texts."""

    data: DataPlan
    folds: FoldsPlan
    encoder: EncoderPlan
    training: TrainingPlan
    linear: LinearPlan
    compared: ComparisonPlan
    execution: KfoldExecution

    def as_json(self) -> dict[str, Any]:
        """All of it, for `report.json`."""
        return asdict(self)

    @property
    def weighted(self) -> bool:
        """Whether rare labels count more in training."""
        return self.training.class_weights != "none"

    def shown(self) -> dict[str, Any]:
        """What the page shows of it, by name."""
        return asdict(self.folds) | asdict(self.training) | asdict(self.encoder)

    def deciding(self) -> dict[str, Any]:
        """What the encoder's folds depend on: a run with another name or path may be the same."""
        found = self.as_json()
        del found["compared"], found["data"]["path"], found["encoder"]["model"], found["linear"]
        del found["execution"]["jobs"]
        return found


@dataclass(frozen=True, kw_only=True)
class QuickPlan:
    """A run of the linear model alone; the fields as in `KfoldPlan`.

    Attributes:
        encoder: that is not trained, its directory, or Hub id and commit; None without one, or
            before it is chosen by the labels.
    """

    data: DataPlan
    folds: FoldsPlan
    linear: LinearPlan
    execution: KfoldExecution
    encoder: str | None = None

    def as_json(self) -> dict[str, Any]:
        """All of it, for `report.json`."""
        return asdict(self)

    @property
    def weighted(self) -> bool:
        """Whether rare labels count more in training."""
        return self.linear.balanced

    def shown(self) -> dict[str, Any]:
        """What the page shows of it, by name."""
        return asdict(self.folds) | asdict(self.linear) | {"encoder": self.encoder}


@dataclass(frozen=True, kw_only=True)
class Found:
    """What only the data, the encoder and the machine can tell.

    Attributes:
        data: what is learned.
        model: see `EncoderPlan`.
        keep_head: the encoder is a finished classifier that is gone on from.
        hidden_size: of the encoder.
        longest_input: tokens that the encoder has positions for.
        parameters: of the model, how many.
        device: its type.
        threads: that torch computes with.
        memory: of the machine, in bytes.
    """

    data: DataPlan
    model: str
    keep_head: bool
    hidden_size: int
    longest_input: int
    parameters: int
    device: str
    threads: int
    memory: int


def plan(config: KfoldConfig, found: Found) -> KfoldPlan:
    """Decide everything of a run. The same arguments give the same plan; nothing is read."""
    flags, keys = config.flags, config.keys
    random_weights = keys.start.random_weights
    training = plan_training(
        keys.training,
        hidden_size=found.hidden_size,
        longest_input=found.longest_input,
        texts=found.data.texts,
        task=found.data.task,
        random_weights=random_weights,
    )
    jobs = flags.jobs
    if jobs is None:
        jobs = _side_by_side(found, training, flags.seeds * flags.folds + 1)
    return KfoldPlan(
        data=found.data,
        folds=plan_folds(config),
        encoder=EncoderPlan(
            model=found.model,
            random_weights=random_weights,
            head="kept" if found.keep_head else "new",
        ),
        training=training,
        linear=LinearPlan(
            enabled=keys.linear.enabled and found.data.task == "single",
            morphemes=keys.linear.morphemes,
            balanced=keys.training.class_weights == "balanced",
        ),
        compared=ComparisonPlan(
            baselines=flags.baselines,
            chat_model=keys.llm.model,
            learning_curve=keys.measuring.learning_curve,
        ),
        execution=KfoldExecution(device=found.device, jobs=jobs),
    )


def plan_quick(config: KfoldConfig, data: DataPlan, device: str) -> QuickPlan:
    """Decide everything of a run of the linear model alone; nothing is read."""
    return QuickPlan(
        data=data,
        folds=plan_folds(config),
        linear=LinearPlan(
            enabled=True,
            morphemes=config.keys.linear.morphemes,
            balanced=True,
        ),
        execution=KfoldExecution(device=device, jobs=1),
    )


def plan_folds(config: KfoldConfig) -> FoldsPlan:
    """How the texts are split, which nothing that is found changes."""
    flags, threshold = config.flags, config.keys.measuring.near_duplicate_threshold
    return FoldsPlan(
        folds=flags.folds,
        seeds=tuple(range(flags.seed, flags.seed + flags.seeds)),
        near_duplicate_threshold=threshold if flags.group_near_duplicates else None,
        group_column=config.keys.data.group_column,
    )


def _side_by_side(found: Found, training: TrainingPlan, trainings: int) -> int:
    """How many of a run's trainings to do at once; the same machine always gives the same.

    Two of one thread each are done before one after the other with both threads, for neither ever
    waits (docs/performance.md).
    """
    steps = trainings * training.epochs * found.data.texts / training.batch_size
    if found.device != "cpu" or steps < _WORTH_STARTING:
        return 1
    room = found.memory // 2 // (_PROCESS_BYTES + found.parameters * _PARAMETER_BYTES)
    return max(1, min(trainings, found.threads, room))


def plan_training(
    settings: TrainSettings,
    *,
    hidden_size: int,
    longest_input: int,
    texts: int,
    task: Task = "single",
    random_weights: bool = False,
) -> TrainingPlan:
    """Decide what `settings` leaves open, by the encoder, the texts and the task.

    Args:
        settings: checked.
        hidden_size: of the encoder.
        longest_input: tokens that it was trained on and has positions for.
        texts: how many there are, those that are held out included.
        task: `multi` keeps texts out of training to choose its thresholds.
        random_weights: they have nothing that a smaller rate in lower layers would keep.
    """
    rates = default_rates(hidden_size, random_weights=random_weights)
    given = asdict(settings)
    given["max_length"] = min(settings.max_length, longest_input)
    for name, default in (("epochs", default_epochs(texts)), *asdict(rates).items()):
        if given[name] is None:
            given[name] = default
    dev_fraction = settings.early_stopping_fraction
    if not dev_fraction and task == "multi":
        dev_fraction = THRESHOLD_FRACTION
    return TrainingPlan(**given, dev_fraction=dev_fraction)
