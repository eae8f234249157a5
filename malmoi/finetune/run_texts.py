"""The texts of a run: read, described, spread over folds. Nothing of torch is needed for it."""

from pathlib import Path

import numpy as np

from malmoi.errors import InputError
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.data.folds import (
    SplitTexts,
    assign_folds,
    in_company,
    joined_groups,
    letters_of_all,
    near_duplicate_groups,
    numbered,
    strata_of,
)
from malmoi.finetune.data.reading import read_examples
from malmoi.finetune.plan import DataPlan, FoldsPlan
from malmoi.finetune.run_config import KfoldConfig
from malmoi.model_folders import ENCODER, find_named, is_hub_id
from malmoi.text.duplicates.near import DEFAULT_THRESHOLD
from malmoi.text.reading.notes import ReadingNotes


def read_texts(config: KfoldConfig) -> tuple[Examples, ReadingNotes]:
    """The labelled texts that the flags name, and how the files were read.

    Raises:
        InputError: they cannot be read, or too few have a label.
    """
    source = config.source
    notes = ReadingNotes(say=lambda line: print(line, flush=True))
    examples = read_examples(
        source.place,
        source.labels,
        config.row_format,
        per_label=config.flags.folds,
        rare=config.flags.rare,
        notes=notes,
        test=config.test,
    )
    return examples, notes


def data_plan(examples: Examples) -> DataPlan:
    """What a plan says of the texts."""
    return DataPlan(
        path=str(examples.path),
        sha256=examples.sha256,
        texts=len(examples.texts),
        task=examples.task,
        labels=tuple(examples.labels),
    )


def split_texts(examples: Examples, folds: FoldsPlan) -> SplitTexts:
    """Spread the texts over folds, with every seed of the plan; what belongs together stays so.

    Raises:
        InputError: groups leave a fold without texts, or without a label to train on.
    """
    groups = examples.groups
    texts: list[tuple[str, ...]] = [(text,) for text in examples.texts]
    if examples.pairs is not None:
        # A pair the other way round is the same pair, or tells its label all the same.
        pairs = zip(examples.texts, examples.pairs, strict=True)
        texts = [tuple(sorted(pair)) for pair in pairs]
    alike = numbered(letters_of_all(examples.texts, examples.pairs))
    if in_company(alike):
        groups = joined_groups(alike, groups)
    threshold = folds.near_duplicate_threshold
    near = near_duplicate_groups(list(map(" ".join, texts)), threshold or DEFAULT_THRESHOLD)
    if threshold is not None:
        groups = joined_groups(near, groups)
    strata = strata_of(examples.task, examples.targets)
    fold_of = {
        seed: np.array(assign_folds(strata, folds.folds, seed, groups)) for seed in folds.seeds
    }
    has_labels = examples.task in ("single", "pair")
    for of_seed in fold_of.values():
        for fold in range(1, int(of_seed.max()) + 1):
            rest = strata[of_seed != fold]
            lacks_label = has_labels and len(np.unique(rest)) < len(examples.labels)
            if lacks_label or len(rest) == len(strata):
                raise InputError(
                    "texts of {path} that belong together form groups too large for {folds} "
                    "folds: fold {fold} would leave nothing to predict or a label without "
                    "training texts; lower --folds, add texts of other groups, raise "
                    "measuring.near_duplicate_threshold or leave out the column of groups",
                    path=examples.path,
                    folds=int(of_seed.max()),
                    fold=fold,
                )
    return SplitTexts(
        folds=folds.folds,
        fold_of=fold_of,
        strata=strata,
        groups=groups,
        same_letters=in_company(alike),
        near_duplicates=in_company(near),
        rule={
            "same_letters": True,
            "near_duplicate_threshold": threshold,
            "column_of_groups": examples.groups is not None,
        },
    )


def model_name(given: str, source: str) -> str:
    """The directory, or the Hub id with the commit that was taken."""
    place = Path(source)
    # A run or a released model goes by a name, too, which the Hub might have as well.
    if not is_hub_id(given) or find_named(given).is_dir():
        return source
    commit = place.parent.name if place.name == ENCODER else place.name
    return f"{given}@{commit}"
