"""The labels in one cell: a name, several with a separator, or a list as programs write them."""

import json
from typing import Any

from malmoi.errors import InputError
from malmoi.labels.label_names import normal_label
from malmoi.labels.listed_labels import CHOICES, agreed, chosen, is_annotations, listed


def labels_in(cell: str, separator: str | None, where: str) -> list[str]:
    """The names in a cell, each once, in order; none for an empty cell or list.

    Args:
        cell: as `malmoi.text.reading.records` gives it; lists of JSON and Parquet are JSON text.
        separator: what stands between names outside of lists; None where a cell has one.
        where: for the message.

    Raises:
        InputError: nothing stands between two separators, or a list holds no names.
    """
    if not normal_label(cell):
        return []
    spelled = listed(cell)
    if spelled is not None:
        names = [normal_label(name) for name in _names(spelled, where)]
    elif separator is None:
        names = [normal_label(cell)]
    else:
        names = [normal_label(part) for part in cell.split(separator)]
    if "" in names:
        raise InputError(
            "expected labels between the separators {separator!r}, found {cell!r}; correct the "
            "row or give another data.label_separator",
            place=where,
            separator=separator,
            cell=cell,
        )
    return list(dict.fromkeys(names))


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


def _names(cell: Any, where: str) -> list[str]:
    found = cell
    if isinstance(cell, dict) or any(isinstance(one, dict) for one in cell):
        found = chosen(cell)
        if found is None:
            raise InputError(
                'expected label names or "{choices}" in the cell, found {cell!r}; name another '
                "column with --label-column",
                place=where,
                choices=CHOICES,
                cell=str(cell)[:60],
            )
    if isinstance(found, str):
        found = [found]
    wrong = [one for one in found if isinstance(one, list | tuple | dict | set) or one is None]
    if wrong:
        raise InputError(
            "expected label names in a list, found {found!r}; --label-column must name labels of "
            "whole texts",
            place=where,
            found=str(wrong[0])[:60],
        )
    # The order of a set is no order.
    return [str(one) for one in (sorted(found, key=str) if isinstance(found, set) else found)]
