"""The labelling card on a bare page, with a host that does what Streamlit does."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from malmoi.app.labelling.card_server import MOST_TEXTS
from malmoi.app.labelling.component import SCRIPTS
from malmoi.app.labelling.wording import sentences
from malmoi.labels.stored_text import sha256_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FILES = Path(__file__).parents[3] / "malmoi" / "app" / "labelling"
LABELS = [
    {"id": 1, "name": "긍정", "title": "긍정", "meaning": "좋다", "color": "#0072B2", "key": "1"},
    {"id": 2, "name": "부정", "title": "부정", "meaning": "", "color": "#D55E00", "key": "2"},
    {
        "id": 3,
        "name": "x",
        "title": "<b>셋째</b>",
        "meaning": "<i>",
        "color": "#009E73",
        "key": "z",
    },
]
# As Streamlit: a shadow root with the files' contents, the default export called with what the
# server says, and triggers kept for the test to read.
HOST = """
async ({html, css, js}) => {
  window.sent = [];
  const place = document.body.appendChild(document.createElement("div"));
  const root = place.attachShadow({mode: "open"});
  root.innerHTML = `<style>${css}</style><div>${html}</div>`;
  window.load = async (js) => {
    const url = URL.createObjectURL(new Blob([js], {type: "text/javascript"}));
    const module = await import(url);
    window.module = module;
    window.tell = (data) => module.default({
      data, parentElement: root, key: "k", name: "n", setStateValue() {},
      setTriggerValue: (name, value) => window.sent.push({name, value}),
    });
  };
  await window.load(js);
  window.card = root.querySelector(".card");
}
"""


class Card:
    """The card of one page, and the server that a test plays."""

    def __init__(self, page: "Page", *, multi: bool = False, scope: str = "1-1/지은") -> None:
        self.page, self.multi, self.scope, self.answers = page, multi, scope, 0
        files = {
            name: (FILES / f"card.{name}").read_text(encoding="utf-8") for name in ("html", "css")
        }
        self.js = "\n".join((FILES / name).read_text(encoding="utf-8") for name in SCRIPTS)
        page.evaluate(HOST, {**files, "js": self.js, "scope": scope})

    def update(self) -> None:
        """Another version of the app on the same page: a module of its own, of the same code."""
        self.page.evaluate("(js) => window.load(js)", self.js)

    def tell(
        self,
        *,
        labels_with: str = "",
        counts: dict[str, int] | None = None,
        annotators: int = 1,
        **answer: Any,
    ) -> None:
        self.answers += 1
        more = [{**LABELS[0], "id": 4, "name": "더", "title": "더", "key": labels_with}]
        given: dict[str, Any] = {"saved": [], "refused": [], "failed": None}
        given |= {"held": None, "texts": [], "more": False}
        given |= {"sequence": None, "stopped": False, "recent": None, "words": None}
        data = {
            "scope": self.scope,
            "say": sentences(),
            "labels": LABELS + (more if labels_with else []),
            "multi": self.multi,
            "guideline": 3,
            "lease": 600,
            "annotators": annotators,
            "counts": counts or {"mine": 0, "open": 10, "total": 10},
            "answer": given | answer | {"id": self.answers},
        }
        self.page.evaluate("(data) => void window.tell(data)", data)

    def hand_out(
        self,
        *texts: str,
        first: int = 1,
        more: bool = False,
        renewed: bool = False,
        **values: Any,
    ) -> None:
        handed = [
            {"text_id": place, "text": text, "sha256": sha256_of(text), "suggestion": None}
            | {"model": None, "offer": f"offer of {place}", "alike": 0}
            | values
            for place, text in enumerate(texts, first)
        ]
        # Of a full line there are more.
        more = more or len(texts) == MOST_TEXTS
        held = [one["text_id"] for one in handed]
        self.tell(held=held, texts=handed, more=more, renewed=renewed)

    def sent(self) -> list[dict[str, Any]]:
        """The messages so far."""
        return [one["value"] for one in self.page.evaluate("window.sent")]

    def acts(self) -> list[dict[str, Any]]:
        """All acts that are sent or wait to be, each once."""
        kept = self.page.evaluate("Object.values({...localStorage}).map((one) => JSON.parse(one))")
        return sorted(kept, key=lambda act: act["order"])

    def shown(self) -> str:
        return self.page.locator(".text").inner_text()

    def press(self, code: str, **more: Any) -> None:
        """A keydown as the browser gives it for a physical key, whatever the input method says."""
        event = {"code": code, "key": "Process", "bubbles": True, "composed": True} | more
        self.page.evaluate(
            "(event) => document.body.dispatchEvent(new KeyboardEvent('keydown', event))", event
        )


def bare_page(chromium: "Browser") -> "Page":
    """A page of an origin, so that the browser has storage for it."""
    page = chromium.new_page()
    page.route("**/*", lambda route: route.fulfill(body="<body></body>", content_type="text/html"))
    page.goto("http://card.test/")
    return page


def named(acts: list[dict[str, Any]]) -> list[list[str]]:
    """The names of the labels of each act."""
    return [[label["name"] for label in act["labels"]] for act in acts]
