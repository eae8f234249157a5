"""Which texts: files with the columns that are read of each, or pasted lines."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from malmoi.app.language import say
from malmoi.app.plain_text import escaped
from malmoi.app.projects.imports import ImportOrder
from malmoi.app.projects.preview import FilePreview, look_at
from malmoi.app.projects.uploads import UploadFolder, names_apart, shown_name
from malmoi.app.rows_left_out import explain_file
from malmoi.app.views.file import how_read
from malmoi.errors import InputError
from malmoi.labels.importing import FileOrigin, WayOfReading
from malmoi.labels.label_column import column_of_annotators
from malmoi.messages import Phrase
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.sources import Source

_KEPT = "project_uploads"
_SHOWN_ROWS = 4
_NO_COLUMN = -1
_ORIGINS: dict[FileOrigin, str] = {
    "table": Phrase("a table or a list of texts"),
    "label-studio": Phrase("exported by Label Studio"),
    "doccano": Phrase("exported by doccano"),
}


@dataclass(kw_only=True)
class KeptFile:
    """An upload on the disk, and what was seen in it, by whether its first row is a header."""

    source: Source
    folder: UploadFolder
    previews: dict[bool, FilePreview] = field(default_factory=dict)

    def preview(self, no_header: bool) -> FilePreview:
        """Its beginning, read once."""
        if no_header not in self.previews:
            self.previews[no_header] = look_at(self.source, no_header=no_header)
        return self.previews[no_header]


@dataclass(frozen=True, kw_only=True)
class ChosenFile:
    """A file, and how the visitor wants it to be read."""

    kept: KeptFile
    way: WayOfReading


@dataclass(frozen=True, kw_only=True)
class ChosenTexts:
    """What was chosen so far.

    Attributes:
        files: those that can be read.
        unreadable: how many more were given.
    """

    files: Sequence[ChosenFile]
    unreadable: int = 0


def choose_texts(key: str) -> ChosenTexts:
    """Draw the fields; what is chosen so far.

    Args:
        key: of this form; another key is an empty form.
    """
    how = st.segmented_control(
        say("Texts"),
        ("files", "pasted"),
        default="files",
        required=True,
        format_func={
            "files": say("Files"),
            "pasted": say("Paste"),
        }.__getitem__,
        key=f"texts-how-{key}",
    )
    if how == "pasted":
        text = st.text_area(
            say("Texts (one a line)"),
            key=f"texts-pasted-{key}",
            height=180,
            placeholder=say("Arrived fast\nThe box was torn"),
        )
        return ChosenTexts(files=_pasted(text or "", key))
    return _uploaded(upload_files(key), key)


def upload_files(key: str) -> list[Any]:
    """Draw the field for files of a form alone; the uploads that are in it."""
    return st.file_uploader(
        say("CSV, TSV, XLSX, JSON, JSONL, Parquet, TXT (.gz and .zst, too)"),
        accept_multiple_files=True,
        key=f"texts-files-{key}",
    )


def as_order(chosen: Sequence[ChosenFile]) -> ImportOrder:
    """Files that are read in one way go together."""
    apart = names_apart(one.kept.source for one in chosen)
    groups: list[tuple[WayOfReading, list[Source]]] = []
    for one, source in zip(chosen, apart, strict=True):
        for way, sources in groups:
            if way == one.way:
                sources.append(source)
                break
        else:
            groups.append((one.way, [source]))
    return ImportOrder(groups=groups, folders=[one.kept.folder for one in chosen])


def _pasted(text: str, key: str) -> list[ChosenFile]:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return []
    equal = len(lines) - len(set(lines))
    st.caption(
        say("{texts:text}", texts=len(lines))
        + (say(" (repeated, and kept once: {equal:,})", equal=equal) if equal else "")
    )
    kept: dict[str, Any] = st.session_state.setdefault(_KEPT, {})
    name = f"pasted-{key}"
    if name not in kept or kept[name][0] != text:
        folder = UploadFolder()
        source = folder.write(say("pasted.txt"), "\n".join(lines).encode())
        kept[name] = (text, KeptFile(source=source, folder=folder))
    # Whatever the lines look like, each of them is a text.
    way = WayOfReading(options=ReadOptions(delimiter="none"))
    return [ChosenFile(kept=kept[name][1], way=way)]


def _uploaded(uploads: Sequence[Any], key: str) -> ChosenTexts:
    kept: dict[str, Any] = st.session_state.setdefault(_KEPT, {})
    now = {f"{key}-{upload.file_id}" for upload in uploads}
    for gone in [name for name in kept if name.startswith(f"{key}-") and name not in now]:
        del kept[gone]
    chosen = []
    for number, upload in enumerate(uploads):
        name = f"{key}-{upload.file_id}"
        try:
            if name not in kept:
                folder = UploadFolder()
                source = folder.take(number, upload.name, upload)
                kept[name] = KeptFile(source=source, folder=folder)
            one = _choose_columns(kept[name], name)
        except InputError as error:
            explain_file(
                say("This file cannot be read: ") + escaped(shown_name(upload.name)),
                error,
            )
            continue
        chosen.append(one)
    return ChosenTexts(files=chosen, unreadable=len(uploads) - len(chosen))


def _choose_columns(kept: KeptFile, key: str) -> ChosenFile:
    """Columns and samples of a file, and what is read of them.

    Raises:
        InputError: it cannot be read.
    """
    no_header_key = f"{key}-no-header"
    preview = kept.preview(bool(st.session_state.get(no_header_key)))
    with st.container(border=True):
        st.text(kept.source.name)
        if preview.is_list:
            st.caption(say("Each line is a text."))
            shown = [row[0] for row in preview.rows[:_SHOWN_ROWS]]
            st.dataframe({say("Text"): shown}, hide_index=True)
            for line in how_read(preview.notes):
                st.caption(line)
            return ChosenFile(kept=kept, way=preview.way(text=0, label=None, no_header=False))
        origin = _choose_origin(preview, key)
        left, right = st.columns(2)
        columns = preview.columns
        text = left.selectbox(
            say("Column of the texts"),
            list(range(len(columns))),
            index=preview.text,
            format_func=columns.__getitem__,
            key=f"{key}-text",
        )
        label = choices = annotator_column = annotator = None
        if origin == "table":
            label = _choose_label_column(preview, text, right, key)
        elif len(preview.choices) > 1:
            choices = _choose_choices(preview.choices, right, key)
        if label is not None:
            others = [name for place, name in enumerate(columns) if place not in (text, label)]
            annotator_column = _choose_annotator_column(others, left, key)
        if annotator_column == "" or origin == "doccano":
            annotator = _ask_for_annotator(right, key)
        _show_sample(preview, text, label)
        no_header = False
        if origin == "table" and kept.source.format not in (".json", ".jsonl", ".parquet"):
            no_header = st.checkbox(say("The first row is a text (no header)"), key=no_header_key)
        way = preview.way(
            text=text,
            label=label,
            no_header=no_header,
            origin=origin,
            choices=choices,
            annotator_column=annotator_column,
            annotator=annotator,
        )
    return ChosenFile(kept=kept, way=way)


def _choose_label_column(
    preview: FilePreview, text: int, place: DeltaGenerator, key: str
) -> int | None:
    chosen: int = place.selectbox(
        say("Column of labels"),
        [_NO_COLUMN, *(one for one in range(len(preview.columns)) if one != text)],
        format_func=lambda one: (
            say("None: texts only") if one == _NO_COLUMN else preview.columns[one]
        ),
        key=f"{key}-label",
        help=say("Its values come in as labels."),
    )
    return None if chosen == _NO_COLUMN else chosen


def _choose_annotator_column(columns: Sequence[str], place: DeltaGenerator, key: str) -> str:
    """Who labelled each row; "" where no column says it."""
    found = column_of_annotators(columns)
    return place.selectbox(
        say("Column of who labelled"),
        ["", *columns],
        index=0 if found is None else 1 + columns.index(found),
        format_func=lambda name: name or say("None: one person"),
        key=f"{key}-annotator-column",
        help=say("Where several people have labelled a text, each keeps a label of their own."),
    )


def _ask_for_annotator(place: DeltaGenerator, key: str) -> str | None:
    """The one person who labelled; None: whoever imports."""
    named = place.text_input(
        say("Who labelled?"), key=f"{key}-annotator", placeholder=say("me"), max_chars=100
    )
    return (named or "").strip() or None


def _choose_choices(names: Sequence[str], place: DeltaGenerator, key: str) -> str | None:
    """Which of the questions of a project in Label Studio; None for all of them."""
    return place.selectbox(
        say("Choices with the labels"),
        [*names, None],
        format_func=lambda one: say("All: several labels a text") if one is None else one,
        key=f"{key}-choices",
        help=say("The file answers several questions. Only the labels of this one come in."),
    )


def _choose_origin(preview: FilePreview, key: str) -> FileOrigin:
    if preview.origin == "table":
        return "table"
    options: list[FileOrigin] = [preview.origin, "table"]
    chosen: FileOrigin = st.radio(
        say("What kind of file is it?"),
        options,
        format_func=lambda one: say(_ORIGINS[one]),
        key=f"{key}-origin",
        horizontal=True,
        help=say("Read as another tool's file, its labels come in, too."),
    )
    return chosen


def _show_sample(preview: FilePreview, text: int, label: int | None) -> None:
    """The first rows, with what is read in front."""
    first = [text] if label is None else [text, label]
    order = [*first, *(place for place in range(len(preview.columns)) if place not in first)]
    rows = [
        [row[place] if place < len(row) else "" for place in order]
        for row in preview.rows[:_SHOWN_ROWS]
    ]
    frame = pd.DataFrame(rows, columns=[preview.columns[place] for place in order], dtype="str")
    st.dataframe(frame, hide_index=True)
    if preview.header_below is not None:
        title = preview.header_below
        st.warning(
            say(
                "Row {title} of the table looks like the header. Delete what is above it and "
                "upload the file again; as it is, the header becomes a text, too.",
                title=title,
            ),
            icon=":material/table_rows:",
        )
    if not any(row[0].strip() for row in rows):
        st.caption(say("The first cells of this column are empty. Is it the one with the texts?"))
    encoding = preview.notes.encoding
    lines = how_read(preview.notes)
    if encoding and encoding != "UTF-8":
        lines.append(say("Encoding: {encoding}", encoding=encoding))
    if lines:
        st.caption(" · ".join(lines))
