"""The page "살펴보기": texts searched, one of them opened, many given a label at once."""

from dataclasses import dataclass, field

import pandas as pd
import streamlit as st

from malmoi.app import learning
from malmoi.app.explanation import explain
from malmoi.app.exploring.bulk import draw_bulk, draw_latest, say_what_was_done
from malmoi.app.exploring.filters import choose_search
from malmoi.app.exploring.one_text import draw_history
from malmoi.app.exploring.similar import draw_similar
from malmoi.app.exploring.words import draw_words
from malmoi.app.language import say
from malmoi.app.plain_text import shortened
from malmoi.app.reviewing.one_text import shown_labels
from malmoi.app.sections import choose_section
from malmoi.app.visit import OpenProject, Visit
from malmoi.errors import InputError
from malmoi.inference.labelling.labels_needed import LABELS_A_ROUND
from malmoi.labels.scores import scores_version
from malmoi.labels.searching import (
    MOST_COUNTED,
    Cursor,
    FoundText,
    Search,
    SearchOrder,
    SearchPage,
    count_texts,
    search_texts,
)
from malmoi.messages import Phrase

_ROWS = 50
# In the address: the id of a text, as the labelling card asks for those like it.
_SIMILAR = "similar"
_PLACE = "explore_place"
_PARTS = {
    "texts": (Phrase("Texts"), "manage_search"),
    "words": (Phrase("Words of labels"), "match_word"),
}
# Pixels: a day and a time are not cut. With it the columns fit a window of 1280.
_WIDTH_OF_A_MOMENT = 105
_BY_MODEL: tuple[SearchOrder, ...] = ("doubt", "least sure", "surest")


@dataclass
class _Place:
    """Where in a search the visitor is: where its pages begin, and how many texts it has."""

    project_id: int
    search: Search
    begins: list[Cursor | None] = field(default_factory=lambda: [None])
    count: int | None = None


def show(visit: Visit) -> None:
    open_project = visit.needs_project()
    if open_project is None:
        return
    if choose_section("explore_part", _PARTS) == "words":
        draw_words(open_project)
        return
    changed = say_what_was_done(open_project)
    if (asked := st.query_params.get(_SIMILAR, "")).isdecimal():
        if st.button(say("Search all texts"), icon=":material/arrow_back:", key="explore_all"):
            del st.query_params[_SIMILAR]
            st.rerun()
        _draw_text(open_project, int(asked))
        return
    try:
        search = choose_search(open_project)
        place = _place(open_project, search)
        if changed:
            place.count = None
        page = search_texts(open_project.access, search, after=place.begins[-1], limit=_ROWS)
    except InputError as error:
        explain(say("This cannot be searched for."), error)
        return
    _draw_page(open_project, place, page)


def _draw_text(open_project: OpenProject, text_id: int) -> None:
    try:
        if learning.reads_meaning():
            draw_similar(open_project, text_id)
        draw_history(open_project, text_id)
    except InputError as error:
        explain(say("This text cannot be shown."), error)


def _place(open_project: OpenProject, search: Search) -> _Place:
    held: _Place | None = st.session_state.get(_PLACE)
    if held is None or (held.project_id, held.search) != (open_project.project.id, search):
        held = st.session_state[_PLACE] = _Place(project_id=open_project.project.id, search=search)
    return held


def _draw_page(open_project: OpenProject, place: _Place, page: SearchPage) -> None:
    if not page.texts:
        _say_nothing_was_found(open_project, place.search)
        if open_project.allows("reviewer"):
            draw_latest(open_project)
        return
    place.count = _count(open_project, place, page)
    first = _ROWS * (len(place.begins) - 1) + 1
    _draw_paging(place, page, first)
    # Changes with the texts: what is chosen is known by its row, in which another may stand.
    key = f"explore_rows_{hash(tuple(one.text_id for one in page.texts))}"
    chosen = _draw_table(open_project, page, key)
    if open_project.allows("reviewer"):
        draw_bulk(open_project, place.search, [one.text_id for one in chosen])
    if len(chosen) == 1:
        _draw_text(open_project, chosen[0].text_id)
    else:
        st.caption(
            say("Choose one row to see the labels, the history and the sources of its text.")
        )


def _say_nothing_was_found(open_project: OpenProject, search: Search) -> None:
    if search.order in _BY_MODEL and not scores_version(open_project.access):
        st.info(
            say(
                "No model has learnt yet, so there is no such order. It learns from {labels} "
                "labels on.",
                labels=LABELS_A_ROUND,
            ),
            icon=":material/school:",
        )
    else:
        st.info(
            say("No text was found. Use fewer words or clear the filters."),
            icon=":material/search_off:",
        )


def _count(open_project: OpenProject, place: _Place, page: SearchPage) -> int:
    """How many were found; asked once a search, unless the first page is the last."""
    if place.begins == [None] and page.next is None:
        return len(page.texts)
    return place.count or count_texts(open_project.access, place.search)


def _draw_paging(place: _Place, page: SearchPage, first: int) -> None:
    row = st.container(horizontal=True, vertical_alignment="center")
    count = place.count or 0
    last = first + len(page.texts) - 1
    if count > MOST_COUNTED:
        total = say("more than {most:,}", most=MOST_COUNTED)
    else:
        total = say("{count:,}", count=count)
    row.text(
        say("{first:,}–{last:,} of {total}", first=first, last=last, total=total), width="stretch"
    )
    row.button(
        say("Back"),
        key="explore_back",
        icon=":material/chevron_left:",
        disabled=len(place.begins) < 2,
        on_click=_go_back,
        args=(place,),
    )
    row.button(
        say("Next"),
        key=f"explore_next_{first}",
        icon=":material/chevron_right:",
        disabled=page.next is None,
        on_click=place.begins.append,
        args=(page.next,),
    )


def _go_back(place: _Place) -> None:
    if len(place.begins) > 1:
        place.begins.pop()


def _draw_table(open_project: OpenProject, page: SearchPage, key: str) -> list[FoundText]:
    """The texts as rows; those that are chosen."""
    texts = page.texts
    sees_model = any(one.view is not None for one in texts)
    frame = pd.DataFrame(
        {
            "text": [shortened(one.text, 300) for one in texts],
            "label": [shown_labels(one) for one in texts],
            "suggested": [one.view.label if one.view else None for one in texts],
            "score": [one.view.score if one.view else None for one in texts],
            "doubt": [one.view.doubt if one.view else None for one in texts],
            "flag": ["⚑" if one.flagged else "" for one in texts],
            "comments": [len(one.comments) or None for one in texts],
            "when": [one.labelled_at for one in texts],
        }
    )
    for name in ("score", "doubt"):
        frame[name] = pd.to_numeric(frame[name]) * 100
    column = st.column_config
    picked = st.dataframe(
        frame,
        hide_index=True,
        height=330,
        placeholder="",
        key=key,
        on_select="rerun",
        selection_mode="multi-row",
        column_order=[
            "text",
            "label",
            *(["suggested", "score"] if sees_model else []),
            *(["doubt"] if sees_model and open_project.allows("reviewer") else []),
            "flag",
            "comments",
            "when",
        ],
        column_config={
            "text": column.TextColumn(say("Text"), width=300),
            "label": column.TextColumn(say("Label"), width="small"),
            "suggested": column.TextColumn(say("Suggested"), width="small"),
            "score": column.NumberColumn(say("Score"), format="%.0f%%", width="small"),
            "doubt": column.NumberColumn(
                say("Doubt"),
                format="%.0f%%",
                width="small",
                help=say("How likely the label given is wrong"),
            ),
            "flag": column.TextColumn("⚑", width=30),
            "comments": column.NumberColumn(say("Number of notes"), width=60),
            "when": column.DatetimeColumn(
                say("Labelled at"),
                format="MM-DD HH:mm",
                timezone=st.context.timezone,
                width=_WIDTH_OF_A_MOMENT,
            ),
        },
    )
    rows = picked["selection"]["rows"]
    return [texts[row] for row in rows if row < len(texts)]
