"""What surrounds the pages: the language of the document, Streamlit's own words, empty room."""

from pathlib import Path

import streamlit as st

from malmoi.app.language import language

_component = st.components.v2.component(
    "malmoi_chrome", js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
)
_STYLE = """
<style>
[data-testid="stMainBlockContainer"] { padding-top: 2.5rem; padding-bottom: 2rem; }
/* On a phone the head of the page is not transparent: what lies under it is not seen. */
@media (max-width: 768px) {
  [data-testid="stMainBlockContainer"] { padding-top: 4rem; }
}
[data-testid="InputInstructions"] { display: none; }
[data-testid="stElementToolbar"] { display: none; }
</style>
"""
_KOREAN_STYLE = """
<style>
[data-testid="stFileUploaderDropzone"] button p { font-size: 0; }
[data-testid="stFileUploaderDropzone"] button p::after {
  content: "파일 고르기"; font-size: 1rem;
}
[data-testid="stFileUploaderDropzoneInstructions"] { font-size: 0; }
[data-testid="stFileUploaderDropzoneInstructions"] * { display: none; }
[data-testid="stFileUploaderDropzoneInstructions"]::after {
  content: "또는 여기에 끌어다 놓기 · %dMB까지"; font-size: 0.9rem; opacity: .7;
}
</style>
"""


def draw_chrome() -> None:
    """Draw what no page shows itself."""
    spoken = language()
    st.html(_STYLE)
    if spoken == "ko":
        st.html(_KOREAN_STYLE % st.get_option("server.maxUploadSize"))
    with st.sidebar:
        _component(
            data={"language": spoken},
            key="malmoi_chrome",
            height=1,
            on_anew_change=lambda: None,
        )
