"""One page of the app in Streamlit's own test runner, without the pages beside it."""

from streamlit.testing.v1 import AppTest

_SCRIPT = """
import importlib
from malmoi.app.visit import draw_sidebar
importlib.import_module("malmoi.app.views.{module}").show(draw_sidebar())
"""


def open_page(module: str, **query: str) -> AppTest:
    """The page of `malmoi.app.views.MODULE`, drawn once.

    Args:
        module: of the page.
        query: parameters in the address, such as `project`.
    """
    page = AppTest.from_string(_SCRIPT.format(module=module), default_timeout=600)
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def shown(page: AppTest) -> str:
    """All that is said on a page outside of tables."""
    parts = [*page.error, *page.warning, *page.info, *page.success, *page.code, *page.markdown]
    return "\n".join(str(part.value) for part in [*parts, *page.caption, *page.text])
