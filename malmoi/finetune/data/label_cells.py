"""The labels in one cell: a name, several with a separator, or a list as programs write them."""

import json
import re

from malmoi.errors import InputError
from malmoi.labels.label_names import normal_label
from malmoi.labels.listed_labels import agreed, is_annotations, listed, names_in_list


def labels_in(cell: str, separator: str | None, where: str) -> list[str]:
    """The names in a cell, each once, in order; none for an empty cell or list.

    Args:
        cell: as `malmoi.text.reading.records` gives it; lists of JSON and Parquet are JSON text.
        separator: what stands between names outside of lists, or several such with blanks between
            them; None where a cell has one.
        where: for the message.

    Raises:
        InputError: nothing stands between two separators, or a list holds no names.
    """
    if not normal_label(cell):
        return []
    spelled = listed(cell)
    if spelled is not None:
        names = [normal_label(name) for name in names_in_list(spelled, where)]
    elif separator is None:
        names = [normal_label(cell)]
    else:
        names = [normal_label(part) for part in split_at(separator, cell)]
    if "" in names:
        raise InputError(
            "expected labels between the separators {separator!r}, found {cell!r}; correct the "
            "row or give another data.label_separator",
            place=where,
            separator=separator,
            cell=cell,
        )
    return list(dict.fromkeys(names))


def split_at(separator: str, cell: str) -> list[str]:
    """The parts of a cell between any of these separators, which have blanks between them."""
    several = separator.split()
    if len(several) < 2:
        return cell.split(separator)
    return re.split("|".join(map(re.escape, several)), cell)


def annotated(cell: str, where: str) -> str:
    """What Label Studio's annotations in a cell come to: a list, or "" if nobody has labelled.

    Any other cell stays as it is.

    Raises:
        InputError: annotators differ.
    """
    found = listed(cell) if '"result"' in cell else None
    if found is None or not is_annotations(found):
        return cell
    try:
        labels = agreed(found)
    except InputError as error:
        raise error.at(where) from None
    return "" if labels is None else write_list(labels)


def write_list(names: list[str]) -> str:
    """Names as a cell that `labels_in` reads back, whatever they contain."""
    return json.dumps(names, ensure_ascii=False)
