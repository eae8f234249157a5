"""What was given for a fine-tuning run, read and checked once: flags, a recipe, and `--set`.

Nothing is decided here, see `malmoi.finetune.plan`; nothing is imported that takes long.
"""

from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path

from malmoi.errors import InputError
from malmoi.finetune.data.own_test import DATE_COLUMNS, day_of
from malmoi.finetune.data.row_format import RowFormat
from malmoi.finetune.data.source import DataSource, find_data
from malmoi.finetune.settings import RECIPES, KfoldRecipe, KfoldSettings, TrainSettings
from malmoi.inference.tasks import has_values, reads_pairs
from malmoi.labels.database import label_database
from malmoi.labels.label_names import parse_labels
from malmoi.model_folders import check_source, is_hub_id
from malmoi.settings import (
    Choice,
    Given,
    check_choices,
    check_ranges,
    keys_of,
    read_assignments,
    read_given,
    read_recipe,
    settings_of,
    shown,
)
from malmoi.text.reading.sources import Source, find_sources

_COMPARISONS = ("baselines", "measuring.learning_curve=True")
_KEYS = keys_of(KfoldRecipe)
# What was set by hand and changes nothing; recipes may say more than is used.
CHOICES = (
    *(
        Choice("task", task, "is not one label a text", lacks=("quick", *_COMPARISONS))
        for task in ("multi", "pair", "value", "pair-regression")
    ),
    *(
        Choice("task", task, "has values and no labels", lacks=("labels", "rare"))
        for task in ("value", "pair-regression")
    ),
    Choice("task", "multi", "", owns=("data.label_separator",)),
    Choice("data.test_after", None, "no row is looked at for its day", lacks=("data.date_column",)),
    Choice("data.own_test", False, "takes all rows as one", lacks=("data.test_after",)),
    Choice(
        "quick",
        True,
        "trains no encoder",
        owns=("linear.frozen_encoder",),
        lacks=(
            *(key.partition(".")[2] for key in KfoldSettings.KEYS_WITH_FLAG),
            *(key for key in _KEYS if key.startswith("training.")),
            *("start.continue_from", "start.random_weights", "seeds", "jobs", *_COMPARISONS),
        ),
    ),
    Choice(
        "linear.enabled", False, "leaves the linear model out", lacks=("quick", "linear.morphemes")
    ),
    Choice("group_near_duplicates", True, "", owns=("measuring.near_duplicate_threshold",)),
    Choice(
        "training.early_stopping_fraction",
        0,
        "scores no text after every epoch",
        lacks=("training.patience",),
    ),
    Choice(
        "llm.model",
        None,
        "no chat model is asked",
        lacks=tuple(key for key in _KEYS if key.startswith("llm.") and key != "llm.model"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class KfoldConfig(Given[KfoldSettings, KfoldRecipe]):
    """What was given, and nothing decided.

    Attributes:
        table: in memory, in the place of `--data`.
        test_table: the same of `--test`.
    """

    table: Source | None = None
    test_table: Source | None = None

    @property
    def test(self) -> Path | Source | None:
        """What scores the finished classifier and is in no fold."""
        return self.test_table or self.flags.test

    @cached_property
    def source(self) -> DataSource:
        """What to read, see `malmoi.finetune.data.source.find_data`."""
        labels = self.flags.labels
        return find_data(
            self.table or self.flags.data,
            None if labels is None else parse_labels(labels),
            has_labels=not has_values(self.flags.task),
        )

    @property
    def test_after(self) -> date | None:
        """The last day of what is learnt.

        Raises:
            InputError: what was given is no day.
        """
        given = self.keys.data.test_after
        day = None if given is None else day_of(given)
        if given is not None and day is None:
            raise InputError(
                "expected a day such as 2024-03-01 as data.test_after, found {given}", given=given
            )
        return day

    @property
    def row_format(self) -> RowFormat:
        """What a row of the data is: what was given, else what its task says."""
        flags, keys, task = self.flags, self.keys.data, self.source.task
        reading = self.keys.reading
        text_column, label_column = flags.text_column, flags.label_column
        if task is not None:
            text_column = task.text_column if text_column is None else text_column
            label_column = task.label_column if label_column is None else label_column
        return RowFormat(
            task=flags.task,
            reading=reading.options(text_column=text_column, skip_bad_rows=reading.skip_bad_rows),
            pair_column=flags.pair_column,
            label_column=label_column,
            label_separator=keys.label_separator,
            group_column=keys.group_column,
            ignore_ids=keys.ignore_ids,
            skip_unlabelled=keys.skip_unlabelled,
            own_test=keys.own_test and self.test is None,
            test_after=self.test_after,
            date_columns=DATE_COLUMNS if keys.date_column is None else (keys.date_column,),
        )


def read_config(
    flags: KfoldSettings, table: Source | None = None, test_table: Source | None = None
) -> KfoldConfig:
    """Read the recipe and `--set` beside the flags; opens no data.

    Args:
        flags: as they were given.
        table: see `KfoldConfig`.
        test_table: the same.

    Raises:
        InputError: no such recipe or key, a value that cannot be or is given twice, or a
            combination that makes no sense.
    """
    recipe = {} if flags.recipe is None else read_recipe(flags.recipe, RECIPES)
    by_hand = read_assignments(flags.set)
    for key in flags.KEYS_WITH_FLAG:
        flag = key.partition(".")[2]
        value = getattr(flags, flag)
        if value is None:
            continue
        if key in by_hand:
            raise InputError(
                "{flag} and --set {key} say the same; leave one out", flag=shown(flag), key=key
            )
        by_hand[key] = value
    given = read_given(flags, KfoldRecipe, recipe, by_hand, f"--recipe {flags.recipe}")
    config = KfoldConfig(**vars(given), table=table, test_table=test_table)
    check_ranges(flags)
    if flags.seed + flags.seeds > 2**32:
        raise InputError(
            "expected --seed + --seeds up to 4294967296, found {seed} + ...", seed=flags.seed
        )
    config.keys.training.check()
    _check_start(config)
    check_choices(config, CHOICES)
    _check_columns(config)
    if has_values(flags.task):
        for name in ("class_weights", "focal_gamma", "label_smoothing"):
            if config.value(f"training.{name}") != settings_of(TrainSettings)[name].default:
                raise InputError(
                    "training.{name} is about labels, and --task {task} has values; leave it out",
                    name=name,
                    task=flags.task,
                )
    if config.keys.llm.model is not None:
        if not flags.baselines:
            raise InputError("llm.model is one of the baselines; add --baselines")
        config.keys.llm.check()
    return config


def check_places(config: KfoldConfig) -> None:
    """Raise InputError for the first path where nothing is."""
    data = config.source.place
    if isinstance(data, Path) and not data.exists():  # a database is looked at when it is read
        find_sources(data)
    test = config.test
    if isinstance(test, Path) and label_database(test) is None:
        find_sources(test)
    for model in (config.flags.model, config.keys.start.continue_from):
        if model is not None and not Path(model).exists():
            check_source(model)


def _check_start(config: KfoldConfig) -> None:
    start, model = config.keys.start, config.flags.model
    source = start.continue_from or model or ""
    if start.revision is not None and not is_hub_id(source):
        raise InputError(
            "start.revision is of a Hub id in --model, found {source}; leave it out",
            source=source or "none",
        )
    if start.continue_from is not None and (model is not None or start.random_weights):
        other = "--model" if model is not None else "start.random_weights"
        raise InputError(
            "start.continue_from names what to begin with, and so does {other}; leave one out",
            other=other,
        )


def _check_columns(config: KfoldConfig) -> None:
    flags, separator = config.flags, config.keys.data.label_separator
    if config.test is not None and config.test_after is not None:
        raise InputError("--test and data.test_after both name a test; leave one out")
    if flags.pair_column is not None and not reads_pairs(flags.task):
        raise InputError(
            "--pair-column names a second text, and --task {task} reads one; leave it out or "
            "give --task pair or pair-regression",
            task=flags.task,
        )
    if separator is not None and not separator.strip(" "):
        raise InputError("expected characters other than blanks in data.label_separator")
    has_data = flags.data is not None or config.table is not None
    if not has_data and flags.labels is None:
        raise InputError(
            "expected labelled texts, found neither --data nor --labels of a sample that the "
            "project carries; give --data"
        )
    if not has_data and flags.task != "single":
        raise InputError("--task {task} has no sample in the project; give --data", task=flags.task)
