"""Rows and files that were left out: where each stands, and why it cannot be read."""

import re
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from malmoi.app.downloads import table_file
from malmoi.app.explanation import explain
from malmoi.app.language import language, say
from malmoi.app.plain_text import escaped
from malmoi.errors import InputError

_PLACED = re.compile(r"^(.+?(?::\d+(?::\d+)?)?): (.*)$", re.DOTALL)
_TALLEST = 240


def draw_left_out(lines: Sequence[str], count: int) -> None:
    """Say how many there are, and show those that were kept.

    Args:
        lines: as "file:place: why" or "file: why".
        count: of all that were left out, which may be more.
    """
    st.warning(
        say("Rows or files left out, as they are empty or cannot be read: {count:,}.", count=count),
        icon=":material/report:",
    )
    table = left_out_table(lines)
    st.dataframe(
        table,
        hide_index=True,
        height=min(_TALLEST, 36 * (len(table) + 1) + 2),
        column_config={
            table.columns[0]: st.column_config.TextColumn(width="medium"),
            table.columns[1]: st.column_config.TextColumn(width="large"),
        },
    )
    if count > len(lines):
        st.caption(say("Only the first {shown:,} are shown.", shown=len(lines)))


def explain_file(sentence: str, error: InputError) -> None:
    """Say that a file cannot be used, and why, where that can be said in the visitor's language.

    Args:
        sentence: in that language.
        error: what reading said.
    """
    why = str(error)
    place, english = found.groups() if (found := _PLACED.match(why)) else ("", why)
    reason = reason_of(english)
    if reason != english:
        known = not place or escaped(place) in sentence
        sentence = f"{sentence} {escaped(f'({reason})' if known else f'({place}: {reason})')}"
    explain(sentence, error)


def offer_left_out(lines: Sequence[str]) -> None:
    """The same, to be downloaded as CSV."""
    st.download_button(
        say("Download the list (CSV)"),
        lambda: table_file(left_out_table(lines), ".csv"),
        "left_out.csv",
        "text/csv",
        on_click="ignore",
        icon=":material/download:",
        key="bad_rows_file",
    )


def left_out_table(lines: Sequence[str]) -> pd.DataFrame:
    """A row a line: its place, and why it was left out."""
    rows = []
    for line in lines:
        found = _PLACED.match(line)
        place, why = (found[1], found[2]) if found else ("", line)
        rows.append((place, reason_of(why)))
    return pd.DataFrame(rows, columns=[say("Place"), say("Reason")])


_REASONS = (
    (r"found an empty cell", "글이 빈칸입니다"),
    (r"nothing that is left once it is clean", "글을 다듬으면 남는 것이 없습니다"),
    (r"expected a label of (.*), found '?(.*?)'?$", "라벨 목록에 없습니다: {1}"),
    (r"expected (\d+) (?:fields|columns|cells).*?found (\d+)", "칸 수가 다릅니다: {1}개"),
    (r"broken quoting|quotes that close", "따옴표가 맞지 않습니다"),
    (r"broken JSON", "JSON이 깨졌습니다"),
    (r"expected a JSON object, found", "JSON 객체가 아닙니다"),
    (
        r"expected (?:a string|text or a number|annotations|value\.choices|label) .*found",
        "글이나 라벨의 자리에 다른 종류의 값이 있습니다",
    ),
    (r"a formula without its", "수식에 저장된 값이 없습니다"),
    (r"found the error", "셀에 값이 아니라 오류가 있습니다"),
    (r"the character NUL", "NUL 글자가 들어 있습니다"),
    (r"a lone surrogate", "글자가 깨져 반쪽만 남았습니다"),
    (r"not a text file", "글이 든 파일이 아닙니다"),
    (r"bytes that are not", "글자 인코딩을 알 수 없습니다"),
    (r"the file is empty|every sheet is empty|only blank lines", "빈 파일입니다"),
    (r"rows below the header, found none", "열 이름 아래에 행이 없습니다"),
    (r"no (?:text|label) column", "글이나 라벨이 있는 열을 찾지 못했습니다"),
    (r"damaged", "파일이 손상되었거나 이름과 다른 종류입니다"),
    (r"unsupported kind of file", "읽지 않는 종류의 파일입니다"),
    (r"a pointer of Git LFS", "내용은 없고 Git LFS의 표시만 있습니다"),
    (r"at most|more than", "읽을 수 있는 크기를 넘습니다"),
)


def reason_of(english: str) -> str:
    """The reason as a visitor reads it; one that is not known here as the log has it."""
    for pattern, korean in _REASONS:
        if found := re.search(pattern, english):
            return korean.format(*found.groups()) if language() == "ko" else english
    return english
