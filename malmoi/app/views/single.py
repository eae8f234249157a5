"""The page "한 건 분류": one text, its label and the words that carried it; corrected, saved."""

import hashlib
import time
import uuid
from dataclasses import dataclass, replace

import altair as alt
import pandas as pd
import streamlit as st

from malmoi.app.charts import bars
from malmoi.app.explanation import explain
from malmoi.app.label_saving import Decision, place_for, save_decisions, tell_place
from malmoi.app.language import say
from malmoi.app.model_choice import ChosenModel, choose_model
from malmoi.app.plain_text import shortened
from malmoi.app.projects.guideline import show_guideline
from malmoi.app.table_classification import ACCEPTED, sure_from
from malmoi.app.views.pasted_lines import show_several
from malmoi.app.visit import Visit
from malmoi.app.word_views import show_words
from malmoi.errors import InputError
from malmoi.inference.prediction import LabelsPrediction, Prediction
from malmoi.labels.annotating import Suggestion
from malmoi.text.cleaning.cleaner import clean_text

SHORT_TEXT = 5
_STATE = "single_result"
_CHOSEN, _OTHER = "#1f8f74", "#9aaba5"


@dataclass(frozen=True, kw_only=True)
class _Result:
    """The classification on the page, and what was saved of it: the last label, how many times."""

    id: str
    text: str
    model: str
    prediction: Prediction
    milliseconds: float
    saved_label: str | None = None
    times: int = 0


def show(visit: Visit) -> None:
    chosen = choose_model(visit)
    if chosen is None:
        return
    # Not in a form: what is typed must be known when something else is clicked.
    text = st.text_area(
        say("Text to classify"),
        key="single_text",
        height=120,
        placeholder=say("Paste a review or a comment."),
    )
    # Above what several lines bring: it must not move away from under the pointer.
    asked = st.button(say("Classify"), type="primary", shortcut="Ctrl+Enter")
    lines = [line for line in (text or "").splitlines() if line.strip()]
    by_line = len(lines) > 1 and _asks_for_lines(len(lines))
    if by_line:
        show_several(visit, chosen, lines, asked=asked)
        return
    if asked:
        st.session_state.pop(_STATE, None)
        _classify(chosen, text or "")
    result: _Result | None = st.session_state.get(_STATE)
    if result is None or result.model != chosen.key:
        return
    if not (text or "").strip():
        return  # the page is opened again, or the field was emptied
    if result.text != (text or ""):
        st.caption(say("The text has changed. Press Classify for its result."))
        return
    _show_result(visit, chosen, result)


def _asks_for_lines(count: int) -> bool:
    """Ten pasted reviews are ten texts, but a long one has paragraphs, too: so ask."""
    found = st.segmented_control(
        say("Several lines"),
        ("each", "whole"),
        default="each",
        required=True,
        format_func={
            "each": say("One text a line ({count:,})", count=count),
            "whole": say("As one text"),
        }.__getitem__,
        # Else it would begin anew with each line that is typed.
        key="single_lines",
    )
    return found == "each"


def _classify(chosen: ChosenModel, text: str) -> None:
    if not text.strip():
        st.warning(say("There is no text. Type one."), icon=":material/edit:")
        return
    if not clean_text(text):
        st.warning(
            say("Nothing is left of it without addresses and tags. Type a text."),
            icon=":material/edit:",
        )
        return
    started = time.perf_counter()
    (prediction,) = chosen.classifier.predict([text])
    milliseconds = (time.perf_counter() - started) * 1000
    st.session_state[_STATE] = _Result(
        id=uuid.uuid4().hex,
        text=text,
        model=chosen.key,
        prediction=prediction,
        milliseconds=milliseconds,
    )


def _show_result(visit: Visit, chosen: ChosenModel, result: _Result) -> None:
    prediction = result.prediction
    if len(clean_text(result.text)) <= SHORT_TEXT:
        st.warning(say("The text is very short, so trust this less."), icon=":material/info:")
    if prediction.cut:
        st.info(
            say(
                "The text has {length:,} characters. The encoder read its beginning only. All of "
                "it is saved.",
                length=len(result.text.strip()),
            ),
            icon=":material/content_cut:",
        )
    left, right = st.columns([3, 2], gap="medium")
    with left, st.container(border=True):
        # A metric shows its value as plain text, whatever characters a label has.
        st.metric(say("Prediction"), prediction.label or say("(none)"))
        least = sure_from(chosen.classifier)
        if not prediction.known:
            st.warning(
                say("The model knows no piece of this text. What it says is chance."),
                icon=":material/question_mark:",
            )
        elif least is not None and prediction.confidence < least:
            st.warning(
                say(
                    "To be checked: the model is less sure than where {share:.0%} of its answers "
                    "are right.",
                    share=ACCEPTED,
                ),
                icon=":material/rule:",
            )
        confidence = say("Confidence")
        st.caption(f"{confidence} {prediction.confidence:.1%} · {result.milliseconds:,.0f} ms")
        if prediction.probabilities:
            st.altair_chart(
                _bars(prediction),
                width="stretch",
                alt=say("Probability of each label"),
            )
    with right:
        _show_correction(visit, chosen, result)
    show_words(chosen, result.text, result.id)


def _bars(prediction: Prediction) -> alt.Chart:
    names = prediction.labels if isinstance(prediction, LabelsPrediction) else [prediction.label]
    frame = pd.DataFrame(
        {
            "name": list(prediction.probabilities),
            "number": list(prediction.probabilities.values()),
            "color": [_CHOSEN if x in names else _OTHER for x in prediction.probabilities],
        }
    )
    return bars(frame, say("Probability"), written=".1%")


def _show_correction(visit: Visit, chosen: ChosenModel, result: _Result) -> None:
    labels = chosen.classifier.labels
    if chosen.classifier.gives != "label":
        return  # several labels or a value: given on the page of a project
    place = place_for(visit, labels, chosen.name)
    tell_place(place)
    if place.task is not None and place.task.guideline is not None:
        with st.expander(say("Show the guideline"), icon=":material/menu_book:"):
            show_guideline(place.task.guideline)
    # The key holds the id: every new result starts again from its own prediction.
    label = st.segmented_control(
        say("Right label"),
        place.labels,
        default=result.prediction.label,
        required=True,
        key=f"label_{result.id}",
        wrap=True,
    )
    clicked = st.button(
        say("Save"), type="primary", icon=":material/save:", key=f"save_{result.id}"
    )
    if clicked and label is not None:
        decision = Decision(
            text=result.text,
            label=label,
            suggestion=Suggestion(
                label=result.prediction.label,
                score=result.prediction.confidence,
                model=chosen.name,
            ),
            request_id=_request_id(result, label, visit.person.name),
        )
        try:
            save_decisions(visit, place, [decision], say("one text"))
        except InputError as error:
            explain(say("The label was not saved. Press Save again in a moment."), error)
            return
        result = replace(result, saved_label=label, times=result.times + 1)
        st.session_state[_STATE] = result
    if result.saved_label is not None:
        with st.container(border=True):
            st.markdown(say(":material/check: Saved"))
            st.text(f"{shortened(result.text)} → {result.saved_label}")


def _request_id(result: _Result, label: str, person: str) -> str:
    """Another one for each time that the result is saved: labels may be given in turns."""
    decision = f"{result.id}:{result.times}:{label}:{person}"
    return hashlib.sha256(decision.encode()).hexdigest()
