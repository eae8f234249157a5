"""The part of the page "모델" that trains: start, progress, cancel, what became of it."""

import time
from collections import Counter

import streamlit as st

from malmoi.app import learning
from malmoi.app.explanation import explain, for_visitors
from malmoi.app.found_models import available_models, model_name
from malmoi.app.language import say
from malmoi.app.model_choice import MODEL, use_model
from malmoi.app.model_report import fold_report
from malmoi.app.navigation import go_to
from malmoi.app.plain_text import escaped
from malmoi.app.training_job import TrainingJob, start_again, start_training, training_jobs
from malmoi.app.visit import OpenProject, Visit
from malmoi.errors import InputError
from malmoi.inference.labelling.labels_needed import FEWEST_OF_LABEL
from malmoi.labels.access import ProjectAccess
from malmoi.labels.project_numbers import LastChange, last_change
from malmoi.labels.projects import read_project
from malmoi.labels.training_texts import (
    DIFFERING,
    RETIRED,
    RETIRED_OF_SEVERAL,
    labelled_texts,
    left_out_of_training,
)
from malmoi.messages import Phrase
from malmoi.progress import rounded_time

_SECONDS_TO_LOOK_AGAIN = 3.0
# Of rare labels, those with a button.
_MOST_RARE = 3
_TIMES = {
    "s": Phrase("{number} s"),
    "min": Phrase("{number} min"),
    "h": Phrase("{number} h"),
    "days": Phrase("{number} days"),
}


def show_training(visit: Visit) -> None:
    open_project = visit.needs_project()
    if open_project is None:
        return
    if not open_project.allows("reviewer"):
        st.info(say("Only reviewers and admins can train a model."), icon=":material/lock:")
        return
    jobs = training_jobs(open_project.access)
    if jobs and jobs[0].status() == "running":
        st.fragment(_show_running, run_every=_SECONDS_TO_LOOK_AGAIN)(jobs[0])
        return
    _show_start(open_project)
    if jobs:
        st.divider()
        _show_ended(open_project, jobs[0])


def _show_start(open_project: OpenProject) -> None:
    st.caption(
        say(
            "ELECTRA is measured by 5-fold cross-validation on the labels of this project, then "
            "trained once more on all of them. Every label needs 5 texts; 1,000 texts take some "
            "tens of minutes. It goes on when the app is closed."
        )
    )
    is_one = open_project.project.kind == "single"
    access = open_project.access
    left_out = _left_out(str(access.engine.url), access.project_id, last_change(access), access)
    if differing := left_out[DIFFERING]:
        st.caption(say("{differing:text} on which people differ: left out.", differing=differing))
    if retired := left_out[RETIRED] + left_out[RETIRED_OF_SEVERAL]:
        st.warning(
            say(
                "{retired:text} with a label that is retired: it is not learnt. To learn it, offer "
                "it again under ‘Settings’.",
                retired=retired,
            ),
            icon=":material/label_off:",
        )
    learnt = _learnt(str(access.engine.url), access.project_id, last_change(access), access)
    rare = {label: texts for label, texts in learnt.items() if len(texts) < FEWEST_OF_LABEL}
    enough = len(learnt) - len(rare) > 1
    _tell_rare(open_project, rare, enough)
    train, quick, _ = st.columns([1, 1, 1])
    wanted: bool | None = None
    if train.button(
        say("Train ELECTRA"),
        type="primary",
        icon=":material/model_training:",
        width="stretch",
        key="train",
        disabled=not enough,
    ):
        wanted = False
    if quick.button(
        say("Quick model (1 minute)"),
        icon=":material/bolt:",
        width="stretch",
        help=say("The linear model only. With few labels it is as good as ELECTRA.")
        if is_one
        else say("For projects of exactly one label a text only."),
        key="train_quick",
        disabled=not (is_one and enough),
    ):
        wanted = True
    if wanted is None:
        return
    try:
        start_training(open_project.access, quick=wanted, drop_rare=bool(rare))
    except (InputError, OSError) as error:
        explain(
            say("The training cannot be started."),
            error,
        )
        return
    st.rerun()


@st.cache_data(max_entries=50, show_spinner=False)
def _left_out(
    url: str, project_id: int, change: LastChange, _access: ProjectAccess
) -> Counter[str]:
    return left_out_of_training(_access)


@st.cache_data(max_entries=50, show_spinner=False)
def _learnt(
    url: str, project_id: int, change: LastChange, _access: ProjectAccess
) -> dict[str, list[int]]:
    """The texts that can be learnt, by their labels."""
    offered = read_project(_access).label_names
    found: dict[str, list[int]] = {}
    for text in labelled_texts(_access):
        for label in text.labels:
            if label in offered:
                found.setdefault(label, []).append(text.text_id)
    return found


def _tell_rare(open_project: OpenProject, rare: dict[str, list[int]], enough: bool) -> None:
    """Before anybody waits: which labels have too few texts, and where more of them are."""
    titles = open_project.project.titles
    if rare:
        missing = ", ".join(
            say(
                "{label} {texts:text}",
                label=escaped(titles.get(label, label)),
                texts=FEWEST_OF_LABEL - len(texts),
            )
            for label, texts in rare.items()
        )
        left_out = say("Begun like this, it learns without them.") if enough else ""
        st.warning(
            f"{say('Still needed: {missing}.', missing=missing)} {left_out}",
            icon=":material/playlist_add:",
        )
        with st.container(horizontal=True):
            for label, texts in list(rare.items())[:_MOST_RARE]:
                name = escaped(titles.get(label, label))
                if st.button(
                    say("Find texts that may be {name}", name=name),
                    icon=":material/search:",
                    key=f"find-{label}",
                ):
                    _find(label, texts[-1])
    if not enough:
        st.info(
            say("Two labels with {fewest} texts each are needed.", fewest=FEWEST_OF_LABEL),
            icon=":material/info:",
        )


def _find(label: str, text_id: int) -> None:
    """Go on to the texts that are like one with a label; else to those that a model gives it."""
    if learning.reads_meaning():
        go_to("explore", {"similar": str(text_id)})
    st.session_state["explore_suggested"] = label
    st.session_state["explore_state"] = "open"
    st.session_state["explore_order"] = "surest"
    go_to("explore")


def _show_running(job: TrainingJob) -> None:
    if job.status() != "running":
        st.rerun()
    minutes = (time.time() - job.started_at) / 60
    progress = job.progress()
    started = say("Training for {minutes:minute}.", minutes=round(minutes))
    if progress is None or not progress.total:
        st.progress(0.0, text=say("{started} Preparing…", started=started))
    else:
        share = min(1.0, progress.done / progress.total)
        st.progress(
            share,
            text=say(
                "{started} {done:,} of {total:,} steps ({share:.0%})",
                started=started,
                done=progress.done,
                total=progress.total,
                share=share,
            ),
        )
        if progress.seconds_left is not None:
            left = shown_time(progress.seconds_left)
            st.caption(say("About {left} left", left=left))
    if st.button(say("Cancel"), icon=":material/stop_circle:", key="cancel_training"):
        job.cancel()
        st.caption(say("It is stopping; finished folds are kept. Press again to end it at once."))


def _show_ended(open_project: OpenProject, job: TrainingJob) -> None:
    status = job.status()
    if status == "done":
        _offer(job)
    else:
        if status == "failed" and (error := job.error()) is not None:
            st.error(say("The last training failed."))
            st.code(for_visitors(error), language=None, wrap_lines=True)
        elif status == "failed":
            st.error(
                say(
                    "The last training was cut off. The machine may have been restarted, or its "
                    "memory short."
                )
            )
        else:
            st.warning(say("The last training was cancelled."), icon=":material/stop_circle:")
        if st.button(
            say("Go on training"),
            icon=":material/restart_alt:",
            help=say(
                "Gives the same command again. Finished folds are kept unless labels changed."
            ),
            key="train_again",
        ):
            try:
                start_again(open_project.access, job)
            except (InputError, OSError) as error:
                explain(
                    say("It cannot be started again."),
                    error,
                )
                return
            st.rerun()


def shown_time(seconds: float) -> str:
    """A span of time in the page's words, such as "3.5시간"."""
    number, unit = rounded_time(seconds)
    return say(_TIMES[unit], number=number)


def _offer(job: TrainingJob) -> None:
    made = job.model.resolve()
    found = next((path for path in available_models() if path.resolve() == made), None)
    st.success(say("The training is done. The new model:"), icon=":material/check_circle:")
    st.text(job.name)
    if (report := fold_report(job.model)) is not None:
        st.caption(
            say(
                "Cross-validated F1 {f1:.2f} (on {texts:text}; 1 is perfect)",
                f1=report.f1,
                texts=report.texts,
            )
        )
    if found is None:
        st.caption(say("A model of several labels a text fills the rest, and suggests nothing."))
        return
    in_use = st.session_state.get(MODEL) == model_name(found)
    st.button(
        say("Use this model"),
        type="primary",
        icon=":material/check:",
        on_click=use_model,
        args=(model_name(found),),
        disabled=in_use,
        key="use_new_model",
    )
    if in_use:
        st.caption(
            say(
                "The pages One text and File now predict with it. Which model suggests while "
                "people label is chosen apart, in Settings → Way of working."
            )
        )
