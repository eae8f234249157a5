"""Pages without scripts: what is put into a template is escaped; style and pieces are shared."""

import json
import re
from pathlib import Path
from typing import Any

import jinja2

from malmoi.messages import language_of

# Characters that a page may not contain, or that UTF-8 cannot write (halves of surrogate pairs).
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_SHARED = Path(__file__).with_name("templates")


def rendered(template: str, *folders: Path, language: str = "ko", **context: Any) -> str:
    """A page.

    Args:
        template: name of a file in one of the folders, or beside the shared pieces.
        folders: of templates.
        language: of the page; its templates put sentences into it by `say`.
        context: what the template shows.
    """
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, _SHARED]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    # Pieces that are shared speak the language of the page.
    templates.globals.update(say=language_of(language), language=language)
    templates.filters["number"] = format
    # A setting as it is, and what is not a plain value as JSON.
    templates.filters["plainly"] = lambda value: (
        str(value)
        if value is None or isinstance(value, str | int | float)
        else json.dumps(value, ensure_ascii=False, default=str)
    )
    written = templates.get_template(template).render(**context)
    return _FORBIDDEN.sub("\ufffd", written.lstrip())
