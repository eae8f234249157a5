"""`/docs`: what the OpenAPI document says, as one page that needs no script and no network."""

from __future__ import annotations

import json
from html import escape
from typing import Any

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
pre{background:#f4f4f4;padding:.6rem;white-space:pre-wrap}summary{cursor:pointer}h2{margin-top:2.5rem}
summary code{font-weight:bold}"""


def docs_page(document: dict[str, Any], openapi_url: str) -> str:
    """The page.

    Args:
        document: of OpenAPI.
        openapi_url: where it is found, seen from the page.
    """
    info = document["info"]
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(info["title"])}',
        f"</title><style>{_STYLE}</style><h1>{escape(info['title'])} {escape(info['version'])}",
        f"</h1><pre>{escape(info['description'])}</pre><p>All of it for programs: ",
        f'<a href="{escape(openapi_url)}">OpenAPI</a></p>',
    ]
    tag = ""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if operation["tags"][0] != tag:
                tag = operation["tags"][0]
                parts.append(f"<h2>{escape(tag)}</h2>")
            parts.append(_operation(document, path, method.upper(), operation))
    return "".join(parts)


def _operation(document: dict[str, Any], path: str, method: str, operation: dict[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    examples = [one["value"] for one in content.get("examples", {}).values()]
    examples += [content["example"]] if "example" in content else []
    named = [
        f"{one['name']}: {json.dumps(one['schema'], ensure_ascii=False)}"
        for one in operation.get("parameters", ())
    ]
    answers = [f"{status}: {one['description']}" for status, one in operation["responses"].items()]
    shown = [
        f"<p>{escape(operation.get('description', ''))}</p>",
        *(
            f"<pre>{escape(_curl(path, method, one, operation))}</pre>"
            for one in examples or [None]
        ),
        _listed("Parameters", named),
        _listed("Answers", answers),
    ]
    if schema := content.get("schema"):
        shown.append(_listed("Body", [json.dumps(schema, ensure_ascii=False, indent=1)]))
    summary = f"<code>{method} {escape(path)}</code> {escape(operation['summary'])}"
    return f"<details><summary>{summary}</summary>{''.join(shown)}</details>"


def _curl(path: str, method: str, body: Any, operation: dict[str, Any]) -> str:
    line = f"curl http://127.0.0.1:8000{path}"
    if operation.get("security"):
        line += ' -H "Authorization: Bearer $TOKEN"'
    if body is not None:
        said = json.dumps(body, ensure_ascii=False)
        line += f" -H 'Content-Type: application/json' \\\n     -d '{said}'"
    return line if body is not None or method == "GET" else f"{line} -X {method}"


def _listed(title: str, lines: list[str]) -> str:
    return f"<h4>{title}</h4><pre>{escape(chr(10).join(lines))}</pre>" if lines else ""
