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
    from malmoi.labels.access_keys import KeyKind
    from malmoi.labels.project import Project
    from malmoi.labels.projects import ProjectStore
    from malmoi.labels.text_import import ImportReport

# Labels that were left out one by one, and what is wrong with all of them.
_SHOWN, _REASONS = 5, 10
# Whose labels they are where nobody says it.
_NOBODY = "import"
ABOUT = (
    "list shows the projects of a label database; export FILE writes the texts and labels of one "
    "as a table, or for Label Studio or doccano; import FILE... adds texts and labels of tables, "
    "Label Studio or doccano to one; backup FILE copies the whole database, whoever works on it "
    "meanwhile; restore FILE goes back to such a copy; merge makes two labels one; erase removes "
    "texts, a person's name or a project for good, for a request by law; token makes what a "
    "program of --person, or of whoever runs it, gives to malmoi serve --labels; invitation makes "
    "a link of the app for --person, or for whoever runs it; webhook tells --url of what happens "
    "in a project, and shows whom it tells."
)


@dataclass(kw_only=True)
class LabelsSettings:
    """What is done."""

    action: tyro.conf.Positional[
        Literal[
            "list",
            "export",
            "import",
            "backup",
            "restore",
            "merge",
            "erase",
            "token",
            "invitation",
            "webhook",
        ]
    ]
    """list, export, import, backup, restore, merge, erase, token, invitation or webhook."""
    files: tyro.conf.Positional[tuple[Path, ...]] = ()
    """What is written: a table (.csv, .xlsx, .jsonl, .json, .parquet), or a copy of the database.
    What is imported: tables, or files as another tool exports them. Which copy is gone back to."""
    project: str | None = None
    """Name of the project; not needed where there is one only. Texts and a person are erased in all
    projects where none is named; with neither of them the whole project is erased."""
    database: str | None = None
    """URL of the database, or path of a SQLite file; by default what MALMOI_DATABASE names, or
    runs/labels.db."""
    all_texts: bool = False
    """Export texts without a label, too; else those that anybody has labelled or decided, finished
    or not."""
    fill: str | None = None
    """Export every row of the imported files with a label: those of people, and this model's for
    all other texts. live learns from the labels of the project; else folder or name of a model.
    Several files of different formats may be named."""
    source: Annotated[
        Literal["table", "label-studio", "doccano", "malmoi"], tyro.conf.arg(name="from")
    ] = "table"
    """Which program has made the files that are imported. One of malmoi is a whole project, made
    under its own name or that of --project."""
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
    target: Annotated[
        Literal["table", "label-studio", "doccano", "malmoi"], tyro.conf.arg(name="for")
    ] = "table"
    """For which program the file is exported: FILE.json for Label Studio, FILE.jsonl for doccano;
    both get all texts. FILE.jsonl for malmoi is the whole project, for another label database."""
    text_id: tuple[int, ...] = ()
    """Texts to erase, by text_id of an export."""
    text: tuple[str, ...] = ()
    """Texts to erase, as they are written."""
    person: str | None = None
    """Name to erase; what the person did stays, under a name that says nothing. Or whose token or
    invitation is made."""
    role: Literal["annotator", "reviewer", "admin"] | None = None
    """What the person of a token or an invitation may do in the project; by default what they may
    there already, or label."""
    withdraw: bool = False
    """Take back all tokens, or invitations, of the person in the project, or tell --url no more;
    none is made then."""
    url: str | None = None
    """Address that is told: of every label, decision and model, by signed requests."""
    event: tuple[str, ...] = ()
    """What it is told of: text.labelled, text.decided, model.learnt; by default all."""
    label: str | None = None
    """Label to merge into another one: all that was said with it is said with the other then."""
    into: str | None = None
    """The label that stays."""
    yes: bool = False
    """Erase, merge, or restore; without it they only say what would change."""


def main(settings: LabelsSettings) -> None:
    if settings.action == "list":
        _list(settings)
        return
    if settings.action == "import":
        _import(settings)
        return
    if settings.action == "erase":
        _erase(settings)
        return
    if settings.action == "merge":
        _merge(settings)
        return
    if settings.action in ("token", "invitation"):
        _key(settings, settings.action)
        return
    if settings.action == "webhook":
        _webhook(settings)
        return
    if settings.action == "export" and settings.fill is not None and settings.files:
        _fill(settings, settings.fill)
        return
    if len(settings.files) != 1:
        raise InputError(
            "expected one file, found {files}: malmoi labels {action} FILE",
            files=len(settings.files),
            action=settings.action,
        )
    if settings.action == "restore":
        _restore(settings, settings.files[0])
        return
    if settings.action == "backup":
        from malmoi.labels.backup import back_up

        size = back_up(settings.files[0], settings.database)
        print(f"{settings.files[0]}: {size / 2**20:,.1f} MiB")
        return
    _export(settings, settings.files[0])


def _restore(settings: LabelsSettings, copy: Path) -> None:
    """Say what the database has that a copy has not; with --yes let it be what the copy is."""
    from datetime import datetime

    from malmoi.labels.going_back import go_back, what_would_be_lost
    from malmoi.paths import home

    engine = _store(settings).engine
    lost = what_would_be_lost(engine, copy)
    print(
        f"lost: {lost.texts:,} texts, {lost.acts:,} labels, skips, flags and notes, "
        f"{lost.decisions:,} decisions",
        file=sys.stderr,
    )
    for what, names in (("people without a label in it", lost.people), ("projects", lost.projects)):
        if names:
            print(f"lost: {what}: {', '.join(names)}", file=sys.stderr)
    if not settings.yes:
        print("nothing is changed yet: say --yes to go back", file=sys.stderr)
        return
    kept = home() / "backups" / f"before-going-back-{datetime.now():%Y-%m-%d-%H%M%S}.db"
    go_back(engine, copy, kept)
    print(f"all is as in {copy}; what was there before is in {kept}", file=sys.stderr)


def _list(settings: LabelsSettings) -> None:
    from malmoi.labels.erasing import erased_projects
    from malmoi.labels.review import progress

    store = _store(settings)
    projects = _projects(settings)
    for access, project in projects:
        done = progress(access)
        print(
            f"{project.name}: {done.finished:,} of {done.texts:,} texts finished, "
            f"{done.to_review:,} to review, labels {', '.join(project.label_names)}"
            f"{' (archived)' if project.archived_at else ''}"
        )
    for project_id, person, moment in erased_projects(store.engine):
        print(f"project {project_id} was erased by {person}, {moment:%Y-%m-%d %H:%M} UTC")
    if not projects:
        print("The database has no projects.", file=sys.stderr)


def _merge(settings: LabelsSettings) -> None:
    from dataclasses import replace

    from malmoi.labels.label_merging import merge_labels
    from malmoi.labels.people import Person

    if settings.files or settings.label is None or settings.into is None:
        raise InputError("expected two labels to merge: malmoi labels merge --label A --into B")
    access, project = _project(settings)
    access = replace(access, person=Person(name=_operator(), is_local=True))
    done = merge_labels(access, settings.label, settings.into, only_count=not settings.yes)
    would = "merged" if settings.yes else "nothing is changed yet (--yes merges)"
    print(
        f"{project.name}: {would}: {done.texts:,} texts of {settings.label} become "
        f"{settings.into}, {done.agreeing:,} of them are no longer disputed",
        file=sys.stderr,
    )


def _key(settings: LabelsSettings, kind: "KeyKind") -> None:
    """Print a token, or the end of a link of the app, which nobody sees again; or take them back.

    Without a person it is of whoever runs the server, and the only such token.
    """
    from dataclasses import replace

    from malmoi.labels.access import ProjectAccess
    from malmoi.labels.access_keys import list_keys, make_key, make_owner_key, withdraw
    from malmoi.labels.people import Person, person_name
    from malmoi.labels.projects import members

    if settings.files or (settings.person is None and settings.withdraw):
        raise InputError(
            "expected whose {kind} it is: malmoi labels {kind} --person NAME", kind=kind
        )
    operator = Person(name=_operator(), is_local=True)
    if settings.person is None:
        access = ProjectAccess(engine=_store(settings).engine, project_id=0, person=operator)
        secret = make_owner_key(access, kind, instead=kind == "token")
        whose = "every right in every project"
    else:
        access, project = _project(settings)
        access = replace(access, person=operator)
        if settings.withdraw:
            name = person_name(settings.person)
            mine = [key.id for key in list_keys(access, kind) if key.person == name]
            for key in mine:
                withdraw(access, key)
            print(f"{project.name}: {len(mine):,} {kind}s of {name} taken back", file=sys.stderr)
            return
        known = members(access).get(person_name(settings.person), "annotator")
        role = settings.role or known
        secret = make_key(access, settings.person, role, kind)
        whose = f"{settings.person} as {role} in {project.name}"
    print(secret if kind == "token" else f"/join?invite={secret}")
    where = "" if kind == "token" else "open it behind the app's address; "
    print(f"{whose}: {where}it is not shown again", file=sys.stderr)


def _webhook(settings: LabelsSettings) -> None:
    """Print the secret of a new one, which nobody sees again; take some back; or list all."""
    from dataclasses import replace

    from malmoi.labels.people import Person
    from malmoi.labels.webhooks import EVENTS, list_webhooks, make_webhook, withdraw_webhook

    if settings.files or (settings.url is None and (settings.event or settings.withdraw)):
        raise InputError("expected the address that is told: malmoi labels webhook --url URL")
    access, project = _project(settings)
    access = replace(access, person=Person(name=_operator(), is_local=True))
    found = list_webhooks(access)
    if settings.url is None:
        for one in found:
            print(
                f"{one.url}: {', '.join(one.events)}; {one.waiting:,} waiting, "
                f"{one.given_up:,} given up{f'; {one.error}' if one.error else ''}"
            )
    elif settings.withdraw:
        mine = [one.id for one in found if one.url == settings.url]
        for webhook in mine:
            withdraw_webhook(access, webhook)
        print(f"{project.name}: {len(mine):,} webhooks taken back", file=sys.stderr)
    else:
        # Whoever is at the command line may reach this network anyway.
        events = settings.event or EVENTS
        print(make_webhook(access, settings.url, events, may_be_private=True).secret)
        print(f"{project.name}: signed by this secret; it is not shown again", file=sys.stderr)


def _erase(settings: LabelsSettings) -> None:
    from dataclasses import replace

    from malmoi.labels.erased_files import carry_out, plan_erasure
    from malmoi.labels.erasing import Wanted, rewrite, wanted_texts
    from malmoi.labels.people import Person

    wants_texts = bool(settings.text or settings.text_id)
    if settings.files or (wants_texts and settings.person):
        raise InputError(
            "expected one of --text-id, --text, --person or --project to erase, found more; erase "
            "one after the other"
        )
    projects = [_project(settings)] if settings.project else _projects(settings)
    operator = Person(name=_operator(), is_local=True)
    accesses = [replace(access, person=operator) for access, _ in projects]
    if not accesses:
        raise InputError("expected a database with projects, found none in it")
    if not (wants_texts or settings.person or settings.project):
        if settings.yes:
            rewrite(accesses[0].engine)
            print("the database is written anew, without what was erased", file=sys.stderr)
            return
        raise InputError(
            "expected --text-id, --text, --person or --project to erase, found none of them"
        )
    wanted = Wanted(person=settings.person, is_project=not (wants_texts or settings.person))
    if wants_texts:
        wanted = wanted_texts(accesses, settings.text_id, settings.text)
    erasure = plan_erasure(accesses, wanted)
    for where, phrase in erasure.lines():
        told = phrase if isinstance(where, Path) else f"{where}: {phrase}"
        print(told, file=sys.stderr)
    print(
        "not reached: backups in other folders (erase there with --database) and pg_dump's, files "
        "that people have exported or downloaded, models that were published",
        file=sys.stderr,
    )
    if erasure.is_empty:
        raise InputError("expected something to erase, found nothing of it")
    if not settings.yes:
        print("nothing is erased yet: say --yes to erase it for good", file=sys.stderr)
        return
    carry_out(erasure)
    print("erased for good", file=sys.stderr)


def _operator() -> str:
    """Who gives the command, for the audit trail."""
    import getpass

    from malmoi.labels.people import LOCAL_NAME

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user without a name, as in a container
        return LOCAL_NAME


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
        if settings.target == "malmoi":
            from malmoi.labels.whole_project import export_project

            written = export_project(access, file)
        else:
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


def _fill(settings: LabelsSettings, model: str) -> None:
    from malmoi.inference.labelling.filling import model_that_fills
    from malmoi.labels.filled_export import export_filled
    from malmoi.progress import shown_progress
    from malmoi.text.written_cells import CutCells

    if settings.target != "table":
        raise InputError(
            "expected tables to fill (--for table), found --for {tool}", tool=settings.target
        )
    access, project = _project(settings)
    cuts = CutCells()
    with shown_progress("rows") as show:
        done = export_filled(
            access,
            settings.files,
            model_that_fills(access, model),
            progress=lambda rows, total: show("labelling", rows, total),
            cuts=cuts,
        )
    if cuts.count:
        print(cuts.line, file=sys.stderr)
    names = ", ".join(map(str, settings.files))
    print(
        f"{names}: {done.rows:,} rows of {project.name}, {done.by_people:,} labelled by people, "
        f"{done.by_model:,} by {model}, {done.unsure:,} to look at",
        file=sys.stderr,
    )


def _take_in(settings: LabelsSettings) -> None:
    """Make the project of a file that another label database has written."""
    from malmoi.labels.database import DATABASE_VARIABLE
    from malmoi.labels.projects import ProjectStore, read_project
    from malmoi.labels.training_texts import READER
    from malmoi.labels.whole_project import import_project

    if len(settings.files) != 1:
        raise InputError(
            "expected one file to import, found {files}: malmoi labels import FILE --from malmoi",
            files=len(settings.files),
        )
    store = ProjectStore(
        settings.database, "--database" if settings.database else DATABASE_VARIABLE
    )
    project = read_project(import_project(store, READER, settings.files[0], settings.project))
    print(f"{project.name}: made, with labels {', '.join(project.label_names)}", file=sys.stderr)


def _import(settings: LabelsSettings) -> None:
    if settings.source == "malmoi":
        _take_in(settings)
        return
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
    from malmoi.labels.training_texts import READER

    store = _store(settings)
    return [
        (ProjectAccess(engine=store.engine, project_id=project.id, person=READER), project)
        for project in store.list(READER, archived=True)
    ]


def _store(settings: LabelsSettings) -> "ProjectStore":
    from malmoi.labels.connection import existing_database
    from malmoi.labels.database import DATABASE_VARIABLE
    from malmoi.labels.projects import ProjectStore

    url = existing_database(settings.database)
    return ProjectStore(url, "--database" if settings.database else DATABASE_VARIABLE)
