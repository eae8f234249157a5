"""What a run of k-fold has written beside its classifier: texts, labels and predictions."""

import csv
from collections.abc import Iterator
from pathlib import Path

from malmoi.errors import InputError
from malmoi.text.reading.delimited import LONGEST_CSV_FIELD_CHARACTERS
from malmoi.text.reading.spreadsheet_cells import unguarded

# That every run has.
_COLUMNS = ("id", "text", "label", "predicted", "seed")


def read_predictions(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a run's `predictions.csv`, each by column.

    Raises:
        InputError: the file cannot be read, or is no run's.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CSV_FIELD_CHARACTERS))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file)
            names = list(map(unguarded, next(rows, [])))
            if missing := [name for name in _COLUMNS if name not in names]:
                raise KeyError(missing[0])
            for cells in rows:
                yield dict(zip(names, map(unguarded, cells), strict=True))
    except (OSError, ValueError, KeyError, csv.Error) as error:
        raise InputError(
            "expected what kfold.py wrote in {path}, found {error}", path=path, error=error
        ) from None
