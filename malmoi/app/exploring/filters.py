"""What the visitor looks for on the page 살펴보기, as a search of the store."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import streamlit as st

from malmoi.app.address import take_from_address, write_to_address
from malmoi.app.language import say, say_choice_again
from malmoi.app.plain_text import escaped
from malmoi.app.visit import OpenProject
from malmoi.labels.projects import members
from malmoi.labels.searching import Search, SearchOrder, SearchState

# What the fields hold that narrow nothing. They are set and never taken away: a browser keeps what
# was typed until it is told otherwise, and would send it again.
_NOTHING: dict[str, Any] = {
    **dict.fromkeys(("label", "suggested", "annotator")),
    "source": "",
    "scores": (0, 100),
    "dates": (),
    **dict.fromkeys(("flagged", "noted", "random"), False),
}


def choose_search(opened: OpenProject) -> Search:
    """Draw the fields, and make a search of what stands in them.

    Raises:
        InputError: it cannot be searched for.
    """
    sees_all = opened.allows("reviewer")
    sees_model = sees_all or opened.project.settings.show_suggestion
    # They go on in the next line where the page is narrow.
    row = st.container(horizontal=True, vertical_alignment="bottom")
    take_from_address("explore_words")
    wanted = row.text_input(
        say("글에 든 말", "Words in the text"),
        key="explore_words",
        placeholder=say("예: 배송 빨라요", "Words, all of which the text has"),
        max_chars=200,
        icon=":material/search:",
        width="stretch",
    )
    write_to_address("explore_words", wanted or "")
    say_choice_again("explore_state")
    chosen_state = row.selectbox(
        say("상태", "State"),
        list(_states(sees_all)),
        format_func=_states(sees_all).__getitem__,
        key="explore_state",
        width=165,
    )
    say_choice_again("explore_order")
    chosen_order = row.selectbox(
        say("순서", "Order"),
        list(_orders(sees_all, sees_model)),
        format_func=_orders(sees_all, sees_model).__getitem__,
        key="explore_order",
        width=240,
    )
    with row.popover(say("필터", "Filters"), icon=":material/tune:", width="content"):
        narrowed = _draw_filters(opened, sees_all, sees_model)
    if told := _told(opened, narrowed):
        st.caption(say("필터: ", "Filters: ") + " · ".join(map(escaped, told)))
    return Search(
        words=wanted or "",
        state=chosen_state or None,  # type: ignore[arg-type]
        order=chosen_order,
        **narrowed,
    )


def _states(sees_all: bool) -> dict[SearchState | str, str]:
    names: dict[SearchState | str, str] = {
        "": say("모두", "All"),
        "open": say("라벨이 더 필요함", "Needs labels"),
        "labelled": say("라벨 있음", "Labelled"),
        "skipped": say("건너뜀", "Skipped"),
    }
    if sees_all:
        names["disagreeing"] = say("의견이 갈림", "Disagreeing")
        names["decided"] = say("검수에서 결정함", "Decided in review")
    else:
        names["open"] = say("내 라벨이 없음", "Without my label")
        names["labelled"] = say("내 라벨이 있음", "With my label")
    return names


def _orders(sees_all: bool, sees_model: bool) -> dict[SearchOrder, str]:
    names: dict[SearchOrder, str] = {
        "imported": say("넣은 순서", "As imported"),
        "newest": say("최근 라벨부터", "Newest label"),
    }
    if sees_all:
        names["doubt"] = say("검토: 틀렸을 듯한 라벨부터", "Likely errors first")
    if sees_model:
        names["least sure"] = say("모델이 헷갈리는 글부터", "Model least sure first")
        names["surest"] = say("모델이 확신하는 글부터", "Model surest first")
    return names


def _draw_filters(opened: OpenProject, sees_all: bool, sees_model: bool) -> dict[str, Any]:
    """The less usual fields; all at their beginning are no filter."""
    for name, nothing in _NOTHING.items():
        st.session_state.setdefault(f"explore_{name}", nothing)
    titles = {label.name: label.title for label in opened.project.labels}
    found: dict[str, Any] = {"label": _one(say("붙인 라벨", "Label given"), titles, "label")}
    if sees_model:
        title = say("모델이 제안한 라벨", "Label suggested")
        found["suggested"] = _one(title, titles, "suggested")
        # Its two ends, by what its key holds.
        scores: Any = st.slider(
            say("모델의 점수 (%)", "Score of the model (%)"), 0, 100, key="explore_scores"
        )
        low, high = scores
        found |= {"score_from": low / 100, "score_to": high / 100}
    if sees_all:
        found["annotator"] = _annotator(opened)
    found["source"] = st.text_input(
        say("파일 이름에 든 말", "Part of the file's name"),
        key="explore_source",
        placeholder=say("모두", "All"),
        max_chars=200,
    ).strip()
    dates = st.date_input(
        say("라벨을 붙인 날", "Day of the label"),
        key="explore_dates",
        format="YYYY-MM-DD",
    )
    found |= _days(dates)
    found["flagged"] = st.checkbox(say("깃발이 있는 글만", "Flagged only"), key="explore_flagged")
    found["noted"] = st.checkbox(say("메모가 있는 글만", "With a note only"), key="explore_noted")
    found["at_random"] = st.checkbox(
        say("무작위로 뽑힌 글만", "Drawn at random only"), key="explore_random"
    )
    st.button(
        say("필터 지우기", "Clear the filters"),
        key="explore_clear",
        icon=":material/filter_alt_off:",
        on_click=_clear,
    )
    return found


def _told(opened: OpenProject, narrowed: dict[str, Any]) -> list[str]:
    """What narrows the search, for the popover hides it."""
    titles = {label.name: label.title for label in opened.project.labels}
    low, high = (round(100 * narrowed.get(name, end)) for name, end in _SCORE_ENDS.items())
    told = {
        say("라벨", "label"): titles.get(narrowed["label"] or ""),
        say("제안", "suggested"): titles.get(narrowed.get("suggested") or ""),
        say("점수", "score"): None if (low, high) == (0, 100) else f"{low}–{high}%",
        say("사람", "annotator"): narrowed.get("annotator"),
        say("파일", "file"): narrowed["source"],
        say("날짜", "day"): say("정함", "chosen") if "since" in narrowed else None,
        say("깃발", "flagged"): "✓" if narrowed["flagged"] else None,
        say("메모", "noted"): "✓" if narrowed["noted"] else None,
        say("무작위", "at random"): "✓" if narrowed["at_random"] else None,
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
        format_func=lambda name: say("모두", "All") if name is None else names[name],
        key=f"explore_{key}",
        placeholder=say("모두", "All"),
    )


def _annotator(opened: OpenProject) -> str | None:
    names = sorted(members(opened.access))
    # Who worked here without a login, or before, is no member: any name can be written.
    return st.selectbox(
        say("라벨을 붙인 사람", "Annotator"),
        names,
        index=None,
        placeholder=say("모두", "All"),
        accept_new_options=True,
        key="explore_annotator",
    )


def _days(dates: Any) -> dict[str, datetime | None]:
    """From the first day's beginning to the last one's end by the visitor's clock."""
    days = [one for one in (dates if isinstance(dates, (list, tuple)) else [dates]) if one]
    if not days:
        return {}
    return {"since": _midnight(days[0]), "until": _midnight(days[-1] + timedelta(days=1))}


def _midnight(day: date) -> datetime:
    offset = st.context.timezone_offset
    behind = timedelta(minutes=offset if offset is not None else -9 * 60)
    return datetime.combine(day, time(), tzinfo=UTC) + behind
