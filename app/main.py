"""The labelling app: `streamlit run app/main.py` from the repository root."""

import importlib
import logging

import streamlit as st

from app.explanation import explain
from corpora.errors import InputError

logger = logging.getLogger(__name__)

# Streamlit speaks English in a few places that it gives no option for.
KOREAN_CHROME = """
<style>
[data-testid="InputInstructions"] { display: none; }
[data-testid="stElementToolbar"] { display: none; }
[data-testid="stFileUploaderDropzone"] button p { font-size: 0; }
[data-testid="stFileUploaderDropzone"] button p::after {
  content: "파일 고르기"; font-size: 1rem;
}
[data-testid="stFileUploaderDropzoneInstructions"] { font-size: 0; }
[data-testid="stFileUploaderDropzoneInstructions"] * { display: none; }
[data-testid="stFileUploaderDropzoneInstructions"]::after {
  content: "또는 여기에 끌어다 놓기 · CSV, TSV, XLSX · 200MB까지"; font-size: 0.9rem; opacity: .7;
}
</style>
"""


def main() -> None:
    """Draw the app once; Streamlit calls this again at every interaction."""
    st.set_page_config(page_title="말모이", page_icon="🧺", layout="centered")
    st.html(KOREAN_CHROME)
    st.title("말모이", anchor=False)
    st.caption("한국어 리뷰와 댓글을 분류하고, 틀린 라벨을 고쳐 모읍니다.")
    try:
        # torch and transformers take seconds to import: the page stands before that.
        with st.spinner("여는 중입니다…"):
            desk = importlib.import_module("app.desk")
        desk.draw()
    except InputError as error:
        explain("입력을 처리할 수 없습니다.", error)
    except Exception:
        # Streamlit's own page for this is in English. Its control flow is not an Exception.
        logger.exception("unexpected error")
        st.error("예상하지 못한 문제가 생겼습니다. 새로 고침해 보고, 계속되면 로그를 보내 주세요.")


if __name__ == "__main__":
    main()
