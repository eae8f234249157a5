"""`malmoi labels ACTION`: the projects of a label database, labels into and out of it, a backup."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from malmoi.errors import InputError
from malmoi.messages import Phrase

if TYPE_CHECKING:
    from malmoi.labels.access import ProjectAccess
    from malmoi.labels.project import Project
    from malmoi.labels.text_import import ImportReport

# Labels that were left out one by one, and what is wrong with all of them.
_SHOWN, _REASONS = 5, 10
# Whose labels they are where nobody says it.
_NOBODY = "import"
ABOUT = (
    "list shows the projects of a label database; export FILE writes the texts and labels of one "
    "as a table, or for Label Studio or doccano; import FILE... adds texts and labels of tables, "
    "Label Studio or doccano to one; backup FILE copies the whole database, whoever works on it "
    "meanwhile."
)


@dataclass(kw_only=True)
class LabelsSettings:
    """What is done."""

    action: tyro.conf.Positional[Literal["list", "export", "import", "backup"]]
    """list, export, import or backup."""
    files: tyro.conf.Positional[tuple[Path, ...]] = ()
    """What is written: a table (.csv, .xlsx, .jsonl, .json, .parquet), or a copy of the database.
    What is imported: tables, or files as another tool exports them."""
    project: str | None = None
    """Name of the project; not needed where there is one only."""
    database: str | None = None
    """URL of the database, or path of a SQLite file; by default what MALMOI_DATABASE names, or
    runs/labels.db."""
    all_texts: bool = False
    """Export texts without a label, too; else those that anybody has labelled or decided, finished
    or not."""
    source: Annotated[Literal["table", "label-studio", "doccano"], tyro.conf.arg(name="from")] = (
        "table"
    )
    """Which program has made the files that are imported."""
    text_column: str | None = None
    """Column of the texts that are imported; found by its name where none is given."""
    label_column: str | None = None
    """Column of their labels, of tables; without one the texts come in alone. Of Label Studio the
    name of the Choices whose labels are imported, by default those of all."""
    annotator: str | None = None
    """Who gave the labels, where the files do not say. Without a name they are labels of "import",
    and a text that has the same label already gets no other."""
    annotator_column: str | None = None
    """Column of who gave each label, of tables; by default annotator, _annotator_id or
    completed_by, "" for none."""
    dry_run: bool = False
    """Only say what an import would do."""
    target: Annotated[Literal["table", "label-studio", "doccano"], tyro.conf.arg(name="for")] = (
        "table"
    )
    """For which program the file is exported: FILE.json for Label Studio, FILE.jsonl for doccano;
    both get all texts."""


def main(settings: LabelsSettings) -> None:
    """List, export or back up."""
    if settings.action == "list":
        _list(settings)
        return
    if settings.action == "import":
        _import(settings)
        return
    if len(settings.files) != 1:
        raise InputError(
            "expected one file to write, found {files}: malmoi labels {action} FILE",
            files=len(settings.files),
            action=settings.action,
        )
    if settings.action == "backup":
        from malmoi.labels.backup import back_up

        size = back_up(settings.files[0], settings.database)
        print(f"{settings.files[0]}: {size / 2**20:,.1f} MiB")
        return
    _export(settings, settings.files[0])


def _list(settings: LabelsSettings) -> None:
    from malmoi.labels.review import progress

    projects = _projects(settings)
    for access, project in projects:
        done = progress(access)
        print(
            f"{project.name}: {done.finished:,} of {done.texts:,} texts finished, "
            f"{done.to_review:,} to review, labels {', '.join(project.label_names)}"
            f"{' (archived)' if project.archived_at else ''}"
        )
    if not projects:
        print("The database has no projects.", file=sys.stderr)


def _export(settings: LabelsSettings, file: Path) -> None:
    from malmoi.labels.exporting import export_for, export_table
    from malmoi.text.written_cells import CutCells

    access, project = _project(settings)
    if settings.target != "table":
        ending = ".json" if settings.target == "label-studio" else ".jsonl"
        if file.suffix.lower() != ending:
            raise InputError(
                "expected a file that ends with {ending} for {tool}, found {file}",
                ending=ending,
                tool=settings.target,
                file=file,
            )
        written = export_for(access, file, settings.target)
        print(f"{file}: {written:,} texts of {project.name}", file=sys.stderr)
        return
    cuts = CutCells()
    written = export_table(access, file, labelled_only=not settings.all_texts, cuts=cuts)
    if cuts.count:
        print(cuts.line, file=sys.stderr)
    # Finished texts have as many labels as they need; one label is enough to be in the file.
    which = "texts" if settings.all_texts else "texts with a label"
    print(f"{file}: {written:,} {which} of {project.name}", file=sys.stderr)


def _import(settings: LabelsSettings) -> None:
    from dataclasses import replace

    from malmoi.labels.importing import WayOfReading, import_files, try_import
    from malmoi.labels.people import Person
    from malmoi.progress import shown_progress
    from malmoi.text.reading.notes import ReadingNotes
    from malmoi.text.reading.options import ReadOptions
    from malmoi.text.reading.sources import find_all_sources

    if not settings.files:
        raise InputError("expected files to import, found none: malmoi labels import FILE...")
    access, project = _project(settings)
    person = Person(name=settings.annotator or _NOBODY, is_local=True)
    access = replace(access, person=person)
    way = WayOfReading(
        origin=settings.source,
        options=ReadOptions(text_column=settings.text_column),
        label_column=settings.label_column,
        annotator_column=settings.annotator_column,
        annotator=settings.annotator,
    )
    notes = ReadingNotes(say=lambda line: print(line, file=sys.stderr, flush=True))
    with shown_progress("rows") as show:
        sources = find_all_sources(settings.files)
        if settings.dry_run:
            done = try_import(access, sources, way, progress=show)
        else:
            done = import_files(access, sources, way, progress=show, notes=notes)
    for line in _left_out(done):
        print(f"left out: {line}", file=sys.stderr)
    texts_only = way.origin == "table" and way.label_column is None
    if texts_only and not settings.dry_run and (flags := _flags_for_labels(access, done.import_id)):
        print(f"texts only: labels come in with {flags}", file=sys.stderr)
    for name, local in done.renamed.items():
        print(f"{local}, of another machine: named {name}; or say --annotator", file=sys.stderr)
    would = "nothing is written; it would be: " if settings.dry_run else ""
    print(f"{project.name}: {would}{_summary(done)}", file=sys.stderr)


def _flags_for_labels(access: "ProjectAccess", import_id: int) -> str | None:
    """How the labels of files come in whose texts alone were asked for; None if they have none."""
    from malmoi.labels.text_import import first_cells
    from malmoi.text.reading.columns import LABEL_COLUMNS, plain_name

    cells = first_cells(access, import_id)
    if {"annotations", "data"} <= cells.keys():
        return "--from label-studio"
    if {"label", "Comments"} <= cells.keys() and isinstance(cells["label"], list):
        return "--from doccano"
    known = {plain_name(name) for name in LABEL_COLUMNS}
    found = next((name for name in cells if plain_name(name) in known), None)
    return None if found is None else f"--label-column {shlex.quote(found)}"


def _left_out(done: "ImportReport") -> list[str]:
    """What was left out: each row of texts, of labels the first few and what is wrong with them."""
    labels = done.bad_labels
    lines = list(map(str, [*done.bad_files, *done.bad_rows.first, *labels.first[:_SHOWN]]))
    if labels.count <= _SHOWN:
        return lines
    most = sorted(done.reasons.items(), key=lambda one: -one[1])
    lines += [f"{count:,} labels: {reason}" for reason, count in most[:_REASONS]]
    rest = sum(count for _, count in most[_REASONS:])
    return [*lines, f"{rest:,} labels for other reasons"] if rest else lines


def _summary(done: "ImportReport") -> str:
    from malmoi.labels.acts_here import VERDICTS

    new = f"{done.new_texts:,} new texts of {done.rows:,} rows, {done.labels:,} new labels"
    if done.was_done:
        # The counts of its texts are those of the earlier time.
        labels = f": 0 new texts, {done.labels:,} new labels" if done.labels else ", nothing is new"
        new = f"imported before{labels}"
    for verdict, phrase in VERDICTS.items():
        if count := done.verdicts[verdict]:
            new += f", {Phrase(phrase, count=count)}"
    if done.suggestions:
        new += f", {done.suggestions:,} suggestions of {done.model}"
    if done.unread_suggestions:
        new += f", {done.unread_suggestions:,} suggestions of models not read"
    return (
        f"{new}; left out: {done.bad_rows.count:,} rows, {len(done.bad_files):,} files, "
        f"{done.bad_labels.count:,} labels"
    )


def _project(settings: LabelsSettings) -> "tuple[ProjectAccess, Project]":
    """The project that is named, or the only one."""
    from malmoi.labels.label_names import normal_label

    projects = _projects(settings)
    wanted = None if settings.project is None else normal_label(settings.project)
    found = [one for one in projects if wanted in (None, one[1].name)]
    if len(found) != 1:
        names = ", ".join(project.name for _, project in projects) or Phrase("none")
        raise InputError(
            "expected --project with one of {names}, found {project}",
            names=names,
            project=settings.project,
        )
    return found[0]


def _projects(settings: LabelsSettings) -> "list[tuple[ProjectAccess, Project]]":
    from malmoi.labels.access import ProjectAccess
    from malmoi.labels.connection import existing_database
    from malmoi.labels.database import DATABASE_VARIABLE
    from malmoi.labels.projects import ProjectStore
    from malmoi.labels.training_texts import READER

    url = existing_database(settings.database)
    store = ProjectStore(url, "--database" if settings.database else DATABASE_VARIABLE)
    return [
        (ProjectAccess(engine=store.engine, project_id=project.id, person=READER), project)
        for project in store.list(READER, archived=True)
    ]
