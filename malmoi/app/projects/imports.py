"""Files into a project: in the background, with a bar, and what was wrong with them at the end."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from malmoi.app.job_bar import draw_job
from malmoi.app.jobs import Job, Key, import_key, jobs
from malmoi.app.language import say
from malmoi.app.learning import after_import
from malmoi.app.navigation import open_project
from malmoi.app.plain_text import escaped
from malmoi.app.projects.progress_counts import count_again
from malmoi.app.projects.uploads import UploadFolder
from malmoi.app.rows_left_out import draw_left_out, explain_file, offer_left_out
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.acts_here import VERDICTS
from malmoi.labels.importing import ImportPhase, Trial, WayOfReading, import_files, try_import
from malmoi.labels.text_import import ImportReport, NoTextsError
from malmoi.text.reading.bad_rows import BadRows
from malmoi.text.reading.records import iter_whole_rows
from malmoi.text.reading.sources import Source

_COUNTED_AT_ONCE = 5_000


@dataclass(frozen=True, kw_only=True)
class ImportOrder:
    """What is to be imported: files by the way in which they are read.

    Attributes:
        folders: where the files are.
        is_trial: only count what would come in.
    """

    groups: Sequence[tuple[WayOfReading, Sequence[Source]]]
    folders: Sequence[UploadFolder] = ()
    is_trial: bool = False


def start_import(access: ProjectAccess, order: ImportOrder) -> Job:
    """Begin an import, or the trial of one, in the background.

    Raises:
        InputError: one goes on in this project already, or the person is no admin.
    """
    with access.reading("admin"):
        pass  # asked at every batch, too; a refusal at once is clearer than one in the background

    def work(job: Job) -> ImportReport:
        outcome = _import(access, order, job)
        if not order.is_trial and (outcome.new_texts or outcome.labels):
            after_import(access)
        return outcome

    return jobs().start(
        import_key(access.engine, access.project_id),
        work,
        person=access.person.name,
        keeps=order,
        recorded=not order.is_trial,
    )


def _import(access: ProjectAccess, order: ImportOrder, job: Job) -> ImportReport:
    outcome, trial = ImportReport(import_id=0), Trial()
    # A trial does little more than counting would.
    counts = [0 if order.is_trial else _count(*group, job) for group in order.groups]
    total = sum(counts) or None
    before = 0
    for way, sources in order.groups:
        rows = 0

        def report(phase: ImportPhase, done: int, before: int = before) -> None:
            nonlocal rows
            rows = max(rows, done)
            job.report(phase, before + done, total)

        try:
            if order.is_trial:
                done = try_import(access, sources, way, progress=report, trial=trial)
            else:
                done = import_files(access, sources, way, progress=report)
            outcome.add(done, len(sources))
        except NoTextsError as error:
            outcome.leave_out(error.errors, error.count)
        except InputError as error:
            outcome.bad_files.append(error)
        before += rows
    return outcome


def _count(way: WayOfReading, sources: Sequence[Source], job: Job) -> int:
    """The rows of files, so that a bar can say how far it is: reading them takes a tenth of the
    time that cleaning and writing them takes."""
    options = replace(way.options, skip_bad_rows=True)
    counted = 0
    try:
        for _ in iter_whole_rows(sources, options, bad=BadRows(skip=True, keep=0)):
            counted += 1
            if not counted % _COUNTED_AT_ONCE:
                job.report("count", counted, None)
    except InputError:
        pass  # the import tells what is wrong
    return counted


def draw_import(project: OpenProject, *, with_end: bool, while_labelling: bool = False) -> None:
    """How far the import of the open project is; nothing where there was none.

    Args:
        project: the open one; only admins import, and see it.
        with_end: how it ended, too, until somebody has closed that.
        while_labelling: on the page for that; the end is for the one who began it alone, and needs
            no button that leads there.
    """
    key = import_key(project.access.engine, project.access.project_id)
    job = jobs().of(key)
    if job is None or not project.allows("admin"):
        return
    if is_trial(job):
        return  # it stands where its button was
    if job.is_on:
        draw_job(key, say("Importing texts"), stop=say("Stop the import"))
        st.caption(
            say(
                "It goes on when you close the page or go to another one. Texts that have come in "
                "can be labelled at once."
            )
        )
        return
    if with_end and (not while_labelling or project.access.person.name in job.people):
        _draw_end(project, key, job, leads_on=not while_labelling)


def is_trial(job: Job | None) -> bool:
    """Whether a job only counts what an import would bring, or has done so."""
    return job is not None and isinstance(job.keeps, ImportOrder) and job.keeps.is_trial


def ask_to_import(job: Job) -> bool:
    """Draw what a trial counts, and whether to import it; whether that is confirmed."""
    key, outcome = job.key, job.result
    if job.is_on:
        draw_job(key, say("Counting what would come in"), stop=say("Cancel"))
        return False
    with st.container(border=True, key="import_question"):
        if job.error is not None:
            explain_file(say("The texts were not imported."), job.error)
        else:
            st.markdown(say("**Nothing has come in yet. So it would be:**"))
            st.markdown("\n".join(f"- {part}" for part in _parts(outcome)))
            if outcome.left_out_count:
                draw_left_out(outcome.left_out, outcome.left_out_count)
        with st.container(horizontal=True):
            is_confirmed = st.button(
                say("Import it so"),
                type="primary",
                icon=":material/done:",
                disabled=outcome is None or not outcome.is_new,
                key=f"confirm-{key[1]}",
            )
            if st.button(say("Cancel"), key=f"cancel-{key[1]}"):
                jobs().forget(key)
                st.rerun()
    return is_confirmed


def _draw_end(project: OpenProject, key: Key, job: Job, *, leads_on: bool) -> None:
    outcome = job.result
    told, buttons = st.container(), st.container(horizontal=True, vertical_alignment="center")
    if job.error is not None:
        with told:
            explain_file(say("The texts were not imported."), job.error)
    elif isinstance(outcome, ImportReport):
        if outcome.rows or outcome.known:
            listed = ", ".join(_parts(outcome))
            # One line with the buttons where there is no more to say: the card is below.
            place = told if outcome.left_out_count else buttons
            place.success(say("Imported: ") + listed + ".", icon=":material/check:")
        if outcome.left_out_count:
            with told:
                draw_left_out(outcome.left_out, outcome.left_out_count)
    else:
        told.warning(
            say(
                "The import was stopped. What had come in stays; give the same files again to go "
                "on."
            ),
            icon=":material/stop_circle:",
        )
    with buttons:
        if leads_on and st.button(
            say("Start labelling"),
            key=f"label-{key[1]}",
            type="primary",
            icon=":material/play_arrow:",
        ):
            # Rows that were left out stay to be looked at and downloaded.
            if isinstance(outcome, ImportReport) and not outcome.left_out_count:
                jobs().forget(key)
                count_again()
            open_project(project.project.name, to_label=True)
        if isinstance(outcome, ImportReport) and outcome.left_out_count:
            offer_left_out(outcome.left_out)
        if st.button(say("OK"), key=f"seen-{key[1]}", icon=":material/done:"):
            jobs().forget(key)
            count_again()
            st.rerun()


def _parts(outcome: ImportReport) -> list[str]:
    """What comes in, and what of the files does not."""
    parts = [say("{new_texts:new text}", new_texts=outcome.new_texts)]
    if outcome.duplicates:
        parts.append(say("{rows:row} whose text was there", rows=outcome.duplicates))
    if outcome.labels or outcome.verdicts:
        parts.append(say("{labels:new label}", labels=outcome.labels))
    for verdict, phrase in VERDICTS.items():
        if count := outcome.verdicts[verdict]:
            parts.append(say(phrase, count=count))
    if outcome.suggestions:
        parts.append(say("{suggestions:suggestion} of a model", suggestions=outcome.suggestions))
    for name, there in outcome.renamed.items():
        told = say("{there} of another machine, here called {name}", there=there, name=name)
        parts.append(escaped(told))
    if outcome.known:
        parts.append(say("{files:file} imported before", files=outcome.known))
    return parts
