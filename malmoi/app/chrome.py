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
h1 { font-size: 1.5rem !important; padding: 0 0 0.5rem !important; }
h3 { font-size: 1.15rem !important; padding: 0 0 0.25rem !important; }
/* Korean lines break between words. */
[data-testid="stMarkdownContainer"] :is(p, li) { word-break: keep-all; overflow-wrap: anywhere; }
/* Light text with the contrast that WCAG asks for. */
[data-testid="stCaptionContainer"] { opacity: 0.75 !important; }
[data-testid="stBaseButton-primary"] kbd { color: inherit; opacity: 1; }
/* Labels to edit: a table under heads, on a phone a card each. */
@media (min-width: 641px) {
  [class*="st-key-label_row"] [data-testid="stWidgetLabel"],
  [class*="st-key-label_row"] [data-testid="stCheckbox"] [data-testid="stMarkdownContainer"] {
    display: none;
  }
}
@media (max-width: 640px) {
  .st-key-label_heads { display: none; }
  [class*="st-key-label_row"] {
    border: 1px solid #cbd3d0; border-radius: 0.5rem; padding: 0.75rem;
  }
  [class*="st-key-label_row"] [data-testid="stColumn"] { min-width: 40%; flex: 1 1 40%; }
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
