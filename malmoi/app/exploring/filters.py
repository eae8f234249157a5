"""What the visitor looks for on the page 살펴보기, as a search of the store."""

from datetime import date, datetime, time, timedelta
from typing import Any

import streamlit as st

from malmoi.app import learning
from malmoi.app.address import take_from_address, write_to_address
from malmoi.app.exploring.similar import texts_like
from malmoi.app.language import say, say_choice_again
from malmoi.app.local_time import visitor_zone
from malmoi.app.plain_text import escaped
from malmoi.app.visit import OpenProject
from malmoi.labels.projects import members
from malmoi.labels.searching import Search, SearchOrder, SearchState

# What the fields hold that narrow nothing. They are set and never taken away: a browser keeps what
# was typed until it is told otherwise, and would send it again.
_NOTHING: dict[str, Any] = {
    **dict.fromkeys(("label", "suggested", "annotator", "assigned_to")),
    "source": "",
    "scores": (0, 100),
    "dates": (),
    **dict.fromkeys(("flagged", "noted", "random"), False),
}


def choose_search(open_project: OpenProject) -> Search:
    """Draw the fields, and make a search of what stands in them.

    Raises:
        InputError: it cannot be searched for.
    """
    sees_all = open_project.allows("reviewer")
    sees_model = sees_all or open_project.project.settings.show_suggestion
    # They go on in the next line where the page is narrow.
    row = st.container(horizontal=True, vertical_alignment="bottom")
    below = st.container()
    take_from_address("explore_words")
    wanted = row.text_input(
        say("Words in the text"),
        key="explore_words",
        placeholder=say("Words, all of which the text has"),
        max_chars=200,
        icon=":material/search:",
        width="stretch",
    )
    write_to_address("explore_words", wanted or "")
    by_meaning = learning.reads_meaning() and below.toggle(
        say("By meaning"),
        key="explore_meaning",
        help=say("Finds texts that say the same in other words, the nearest first."),
    )
    say_choice_again("explore_state")
    chosen_state = row.selectbox(
        say("State"),
        list(_states(sees_all)),
        format_func=_states(sees_all).__getitem__,
        key="explore_state",
        width=165,
    )
    say_choice_again("explore_order")
    by_meaning = by_meaning and bool(wanted)
    chosen_order = row.selectbox(
        say("Order"),
        list(_orders(sees_all, sees_model)),
        format_func=_orders(sees_all, sees_model).__getitem__,
        key="explore_order",
        disabled=by_meaning,
        width=240,
    )
    with row.popover(say("Filters"), icon=":material/tune:", width="content"):
        narrowed = _draw_filters(open_project, sees_all, sees_model)
    if told := _told(open_project, narrowed):
        st.caption(say("Filters: ") + " · ".join(map(escaped, told)))
    return Search(
        words="" if by_meaning else wanted or "",
        nearest=texts_like(open_project, wanted) if by_meaning else None,
        state=chosen_state or None,  # type: ignore[arg-type]
        order="imported" if by_meaning else chosen_order,
        **narrowed,
    )


def _states(sees_all: bool) -> dict[SearchState | str, str]:
    names: dict[SearchState | str, str] = {
        "": say("All"),
        "open": say("Needs labels"),
        "labelled": say("Labelled"),
        "skipped": say("Skipped"),
    }
    if sees_all:
        names["disagreeing"] = say("Disagreeing")
        names["decided"] = say("Decided in review")
    else:
        names["open"] = say("Without my label")
        names["labelled"] = say("With my label")
    return names


def _orders(sees_all: bool, sees_model: bool) -> dict[SearchOrder, str]:
    names: dict[SearchOrder, str] = {
        "imported": say("As imported"),
        "newest": say("Newest label"),
    }
    if sees_all:
        names["doubt"] = say("Likely errors first")
    if sees_model:
        names["least sure"] = say("Model least sure first")
        names["surest"] = say("Model surest first")
    return names


def _draw_filters(open_project: OpenProject, sees_all: bool, sees_model: bool) -> dict[str, Any]:
    """The less usual fields; all at their beginning are no filter."""
    for name, nothing in _NOTHING.items():
        st.session_state.setdefault(f"explore_{name}", nothing)
    titles = open_project.project.titles
    found: dict[str, Any] = {"label": _one(say("Label given"), titles, "label")}
    if sees_model:
        title = say("Label suggested")
        found["suggested"] = _one(title, titles, "suggested")
        # Its two ends, by what its key holds.
        scores: Any = st.slider(say("Score of the model (%)"), 0, 100, key="explore_scores")
        low, high = scores
        found |= {"score_from": low / 100, "score_to": high / 100}
    if sees_all:
        names = sorted(members(open_project.access))
        found["annotator"] = _person(say("Labelled by"), names, "annotator")
        found["assigned_to"] = _person(say("Given to"), names, "assigned_to")
    found["source"] = st.text_input(
        say("Part of the file's name"),
        key="explore_source",
        placeholder=say("All"),
        max_chars=200,
    ).strip()
    dates = st.date_input(say("Day of the label"), key="explore_dates", format="YYYY-MM-DD")
    found |= _days(dates)
    found["flagged"] = st.checkbox(say("Flagged only"), key="explore_flagged")
    found["noted"] = st.checkbox(say("With a note only"), key="explore_noted")
    found["at_random"] = st.checkbox(say("Drawn at random only"), key="explore_random")
    st.button(
        say("Clear the filters"),
        key="explore_clear",
        icon=":material/filter_alt_off:",
        on_click=_clear,
    )
    return found


def _told(open_project: OpenProject, narrowed: dict[str, Any]) -> list[str]:
    """What narrows the search, for the popover hides it."""
    titles = open_project.project.titles
    low, high = (round(100 * narrowed.get(name, end)) for name, end in _SCORE_ENDS.items())
    told = {
        say("label"): titles.get(narrowed["label"] or ""),
        say("suggested"): titles.get(narrowed.get("suggested") or ""),
        say("score"): None if (low, high) == (0, 100) else f"{low}–{high}%",
        say("person"): narrowed.get("annotator"),
        say("Given to"): narrowed.get("assigned_to"),
        say("file"): narrowed["source"],
        say("day"): say("chosen") if "since" in narrowed else None,
        say("flagged"): "✓" if narrowed["flagged"] else None,
        say("noted"): "✓" if narrowed["noted"] else None,
        say("at random"): "✓" if narrowed["at_random"] else None,
    }
    return [f"{name} {value}" for name, value in told.items() if value]


_SCORE_ENDS = {"score_from": 0.0, "score_to": 1.0}


def _clear() -> None:
    for name, nothing in _NOTHING.items():
        st.session_state[f"explore_{name}"] = nothing


def _one(title: str, names: dict[str, str], key: str) -> str | None:
    return st.selectbox(
        title,
        [None, *names],
        format_func=lambda name: say("All") if name is None else names[name],
        key=f"explore_{key}",
        placeholder=say("All"),
    )


def _person(title: str, names: list[str], key: str) -> str | None:
    # Who worked here without a login, or before, is no member: any name can be written.
    return st.selectbox(
        title,
        names,
        index=None,
        placeholder=say("All"),
        accept_new_options=True,
        key=f"explore_{key}",
    )


def _days(dates: Any) -> dict[str, datetime | None]:
    """From the first day's beginning to the last one's end by the visitor's clock."""
    days = [one for one in (dates if isinstance(dates, (list, tuple)) else [dates]) if one]
    if not days:
        return {}
    return {"since": _midnight(days[0]), "until": _midnight(days[-1] + timedelta(days=1))}


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=visitor_zone())
