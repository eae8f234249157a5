"""What an example of doccano says of its text, and a text as an example that doccano takes.

Text classification as backend/data_export/pipeline/factories.py and dataset.py of doccano/doccano
write it: one object a line with id, text, the list label, the list Comments, and the other columns
beside them.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from malmoi.errors import InputError
from malmoi.labels.final_label_rule import final_label
from malmoi.labels.label_reader import ImportedAct, LabelReader, without_labels
from malmoi.labels.project import TaskKind
from malmoi.labels.review import ReviewedText

# In exports of today, and before doccano 1.0.
_LABEL_KEYS = ("label", "labels")
_OWN_KEYS = {"id", "label", "Comments"}


@dataclass(kw_only=True)
class DoccanoReader(LabelReader):
    """Reads examples. doccano does not say who labelled: it exports a file for each user."""

    name = "doccano"

    def read(
        self, cells: Mapping[str, Any], kind: TaskKind, names: Collection[str]
    ) -> Iterator[ImportedAct | InputError]:
        """See `LabelReader`. An empty list also stands for a text that nobody has labelled."""
        found = [cells[key] for key in _LABEL_KEYS if key in cells]
        self.has_labels = self.has_labels or bool(found)
        labels = found[0] if found else None
        if isinstance(labels, str):
            labels = [labels]
        if labels is not None and not isinstance(labels, list):
            yield InputError("expected label as a list of names, found {labels!r}", labels=labels)
        elif labels:
            yield ImportedAct(key="0", labels=list(map(str, labels)))
        comments = cells.get("Comments")
        if isinstance(comments, list) and comments:
            yield ImportedAct(key="1", kind="note", note="\n".join(map(str, comments)))

    def require_labels(self) -> None:
        if not self.has_labels:
            raise without_labels(self.name, _LABEL_KEYS)


def as_example(text: ReviewedText, cells: Mapping[str, Any]) -> dict[str, Any]:
    """A text with its decided label.

    Args:
        cells: the columns that it came with, those of doccano itself among them.
    """
    own = {
        # What is called `data` doccano takes for the text.
        f"{name} (2)" if name == "data" else name: cell
        for name, cell in cells.items()
        if name not in _OWN_KEYS
    }
    final = final_label(text)
    labels = [] if final is None else list(final.labels)
    return own | {"id": text.text_id, "text": text.text, "label": labels, "Comments": text.notes}
