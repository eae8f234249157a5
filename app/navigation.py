"""The pages of the app. One page is imported and drawn at a run."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from app.explanation import explain
from app.language import say
from app.visit import Visit, draw_sidebar
from malmoi.errors import InputError


@dataclass(frozen=True, kw_only=True)
class AppPage:
    """A page: `app.views.MODULE.show(visit)`, under `/MODULE` in the address."""

    module: str
    korean: str
    english: str
    icon: str


PAGES = (
    AppPage(module="single", korean="한 건 분류", english="One text", icon="edit_note"),
    AppPage(module="file", korean="파일 분류", english="File", icon="table"),
    AppPage(module="saved", korean="저장한 라벨", english="Saved labels", icon="inventory_2"),
    AppPage(module="review", korean="검수", english="Review", icon="fact_check"),
    AppPage(module="explore", korean="살펴보기", english="Explore", icon="search"),
    AppPage(module="status", korean="현황", english="Status", icon="monitoring"),
)


def draw() -> None:
    """Draw the sidebar and the page that the address names."""
    try:
        # Outside of any page, so that what is chosen there stays when the page changes.
        visit = draw_sidebar()
    except InputError as error:
        explain(
            say(
                "라벨을 저장할 데이터베이스를 열 수 없습니다.",
                "The database of labels cannot be opened.",
            ),
            error,
        )
        return
    pages = [
        st.Page(
            _drawing(page.module, visit),
            title=say(page.korean, page.english),
            icon=f":material/{page.icon}:",
            url_path=page.module,
            default=page is PAGES[0],
        )
        for page in PAGES
    ]
    st.navigation(pages).run()


def _drawing(module: str, visit: Visit) -> Callable[[], None]:
    def draw_page() -> None:
        show: Callable[[Visit], None] = importlib.import_module(f"app.views.{module}").show
        show(visit)

    return draw_page
