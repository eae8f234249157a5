"""What the labelling card does with keys, texts and answers, on a bare page."""

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from malmoi.app.labelling.card_server import MOST_TEXTS
from malmoi.app.labelling.wording import sentences
from malmoi.labels.stored_text import sha256_of
from tests.malmoi.app.bare_card import Card, bare_page, named

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

WORDS = dict(enumerate(("하나", "둘", "셋", "넷", "다섯"), 1))


@pytest.fixture
def page(chromium: "Browser") -> "Page":
    return bare_page(chromium)


def test_a_key_labels_the_text_on_screen_and_shows_the_next_at_once(page: "Page") -> None:
    card = Card(page)
    card.hand_out("하나", "둘", "셋")
    assert card.shown() == "하나"
    page.keyboard.press("1")
    page.keyboard.press("2")
    assert card.shown() == "셋"
    names = ("text_id", "sha256", "kind", "labels", "offer", "guideline_version")
    acts = [tuple(act[name] for name in names) for act in card.acts()]
    positive, negative = ({"id": place, "name": name} for place, name in ((1, "긍정"), (2, "부정")))
    assert acts == [
        (1, sha256_of("하나"), "label", [positive], "offer of 1", 3),
        (2, sha256_of("둘"), "label", [negative], "offer of 2", 3),
    ]


def test_digits_and_letters_work_in_hangul_mode_and_composing_is_left_alone(page: "Page") -> None:
    card = Card(page)
    card.hand_out("하나", "둘", "셋", "넷")
    card.press("Digit1", isComposing=True)
    card.press("Digit1", repeat=True)
    card.press("Digit1", ctrlKey=True)
    card.press("Digit1", metaKey=True)
    assert card.shown() == "하나"
    card.press("Digit1")
    assert card.shown() == "둘"
    card.press("KeyZ", key="ㅋ")  # the key of a label, which goes before that of undo
    assert card.shown() == "셋" and card.acts()[-1]["labels"] == [{"id": 3, "name": "x"}]
    card.press("Numpad2", key="2")
    assert card.shown() == "넷"
    card.press("Backspace", key="Backspace")
    assert card.shown() == "셋"


def test_saved_is_said_only_when_the_server_has_acknowledged(page: "Page") -> None:
    card = Card(page)
    card.hand_out("하나", "둘", "셋")
    page.keyboard.press("1")
    page.keyboard.press("1")
    saving = page.locator(".saving")
    assert "저장 중 2건" in saving.inner_text() and "저장됨" not in saving.inner_text()
    first, second = card.acts()
    (message,) = [one for one in card.sent() if one["acts"]]
    assert [act["request_id"] for act in message["acts"]] == [first["request_id"]]
    card.tell(saved=[first["request_id"]], sequence=message["sequence"])
    assert "저장 중 1건" in saving.inner_text()
    # What was done meanwhile goes out with the answer, not before.
    again = card.sent()[-1]
    assert [act["request_id"] for act in again["acts"]] == [second["request_id"]]
    card.tell(saved=[second["request_id"]], sequence=again["sequence"])
    assert "긍정 저장됨" in saving.inner_text() and card.acts() == []


def test_what_is_not_acknowledged_is_sent_again_and_survives_a_reload(page: "Page") -> None:
    page.clock.install()
    page.goto("http://card.test/")
    card = Card(page)
    card.hand_out("하나", "둘", "셋")
    page.keyboard.press("1")
    before = len(card.sent())
    page.clock.run_for(20_000)
    assert len(card.sent()) > before
    assert "이 브라우저에 두었습니다" in page.locator(".saving").inner_text()
    ids = {act["request_id"] for one in card.sent() for act in one["acts"]}
    assert len(ids) == 1
    page.reload()
    other = Card(page, scope="1-1/민수")
    other.hand_out("하나", "둘", "셋")
    assert not [act for one in other.sent() for act in one["acts"]]
    page.reload()
    again = Card(page)
    # The server does not know yet that the first one is labelled.
    again.hand_out("하나", "둘", "셋")
    assert again.shown() == "둘"
    assert {act["request_id"] for one in again.sent() for act in one["acts"]} == ids


def test_undo_is_an_act_of_its_own_and_goes_back(page: "Page") -> None:
    card = Card(page)
    card.hand_out("하나", "둘")
    assert page.get_by_role("button", name="되돌리기").is_disabled()
    page.keyboard.press("2")
    page.get_by_role("button", name="되돌리기").click()
    assert card.shown() == "하나"
    label, undo = card.acts()
    assert (undo["kind"], undo["withdraws"], undo["text_id"]) == ("undo", label["request_id"], 1)
    assert undo["request_id"] != label["request_id"]
    # A lease that was asked for before the undo was saved does not take it away again.
    card.hand_out("둘", first=2)
    assert card.shown() == "하나"
    page.keyboard.press("1")
    assert card.shown() == "둘"


def test_a_text_that_somebody_else_has_got_leaves_the_line_but_not_the_screen(page: "Page") -> None:
    card = Card(page)
    card.hand_out("하나", "둘", "셋")
    card.tell(held=[3], texts=[])
    assert card.shown() == "하나"
    page.keyboard.press("1")
    assert card.shown() == "셋"


def test_after_a_note_the_next_digit_is_a_label(page: "Page") -> None:
    card = Card(page)
    card.hand_out("하나", "둘")
    page.keyboard.press("v")
    note = page.get_by_role("textbox", name="메모")
    page.keyboard.type("1번 손님 <b>말</b>")
    assert note.input_value() == "1번 손님 <b>말</b>" and card.acts() == []
    page.keyboard.press("Enter")
    assert note.is_hidden()
    page.keyboard.press("1")
    assert [(act["kind"], act.get("note")) for act in card.acts()] == [
        ("note", "1번 손님 <b>말</b>"),
        ("label", None),
    ]
    page.keyboard.press("v")
    page.keyboard.type("버릴 말")
    page.keyboard.press("Escape")
    assert note.is_hidden() and len(card.acts()) == 2


def test_a_note_that_is_still_open_goes_along_with_the_label(page: "Page") -> None:
    """On a tablet the label is touched, and nobody presses Enter before."""
    card = Card(page)
    card.hand_out("하나", "둘")
    page.keyboard.press("v")
    page.keyboard.type("반어 같음")
    page.get_by_role("button", name="부정").click()
    assert page.get_by_role("textbox", name="메모").is_hidden() and card.shown() == "둘"
    kept = {(act["kind"], act["text_id"]): act for act in card.acts()}
    assert set(kept) == {("label", 1), ("note", 1)} and kept["note", 1]["note"] == "반어 같음"
    # Both are in the first message: nothing waits for a second one.
    assert {act["kind"] for act in card.sent()[-1]["acts"]} == {"label", "note"}
    page.keyboard.press("v")
    page.keyboard.type("다른 작업에서는 아님")
    card.scope = "2-1/지은"
    card.hand_out("셋", first=9)
    (last,) = [act for act in card.acts() if act["text_id"] == 2]
    assert last["kind"] == "note" and not [act for act in card.acts() if act["text_id"] == 9]


def test_a_note_that_is_still_open_outlives_an_update_of_the_app(page: "Page") -> None:
    """A later version's card takes the place of this one's, in the same elements."""
    card = Card(page)
    card.hand_out("하나", "둘")
    page.keyboard.press("v")
    page.keyboard.type("반어 같음")
    card.update()
    card.hand_out("하나", "둘")
    assert page.get_by_role("textbox", name="메모").is_hidden() and card.shown() == "하나"
    page.keyboard.press("1")
    acts = [(act["kind"], act["text_id"], act.get("note")) for act in card.acts()]
    assert acts == [("note", 1, "반어 같음"), ("label", 1, None)]


def test_a_note_that_is_still_open_is_kept_when_the_button_is_pressed_again(page: "Page") -> None:
    card = Card(page)
    card.hand_out("하나", "둘")
    note, button = page.get_by_role("textbox", name="메모"), page.locator("[data-do=note]")
    button.click()
    page.keyboard.type("반어")
    button.click()
    assert note.input_value() == "반어" and [act["note"] for act in card.acts()] == ["반어"]
    page.keyboard.press("End")
    page.keyboard.type(" 같음")
    page.reload()
    assert [act["note"] for act in card.acts()] == ["반어", "반어 같음"]


def test_several_labels_are_toggled_and_saved_by_enter(page: "Page") -> None:
    # The link that led here has the focus.
    page.evaluate(
        """() => {
          const link = document.createElement("a");
          link.href = "#elsewhere";
          document.body.append(link);
          link.focus();
        }"""
    )
    card = Card(page, multi=True)
    card.hand_out("하나", "둘", "셋")
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    assert card.shown() == "둘" and "elsewhere" not in page.url
    page.keyboard.press("2")
    page.get_by_role("button", name="긍정").click()
    page.keyboard.press("z")
    page.keyboard.press("z")
    pressed = page.locator(".labels button").evaluate_all(
        "(all) => all.map((one) => one.getAttribute('aria-pressed'))"
    )
    assert pressed == ["true", "true", "false"]
    # The focus is on a label; Enter saves all the same.
    page.keyboard.press("Enter")
    assert card.shown() == "셋"
    assert named(card.acts()) == [["부정"], ["긍정", "부정"]]
    # A change begins with the labels that a text has.
    work = {"text_id": 2, "text": "둘", "sha256": sha256_of("둘")}
    work |= {"state": "labelled", "labels": ["긍정"]}
    page.locator("summary", has_text=sentences()["recent"]).click()
    card.tell(recent=[work | {"flagged": False, "note": ""}])
    page.get_by_role("listitem").get_by_role("button").click()
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    assert named(card.acts())[2:] == [["긍정", "부정"]]


def test_none_of_several_labels_is_not_called_a_skip(page: "Page") -> None:
    card = Card(page, multi=True)
    card.hand_out("하나", "둘", "셋")
    saving = page.locator(".saving")
    page.keyboard.press("Enter")
    assert card.acts()[-1]["kind"] == "label" and card.acts()[-1]["labels"] == []
    assert saving.inner_text().startswith("해당 없음")
    page.keyboard.press("Minus")
    assert saving.inner_text().startswith("건너뜀")
    own = {"labels": [], "flagged": False, "note": ""}
    recent = [
        own | {"text_id": 1, "text": "하나", "state": "labelled"},
        own | {"text_id": 2, "text": "둘", "state": "skipped"},
    ]
    page.locator("summary", has_text=sentences()["recent"]).click()
    card.tell(recent=recent)
    assert page.locator(".recent b").all_inner_texts() == ["해당 없음", "건너뜀"]
    page.get_by_role("listitem").filter(has_text="하나").get_by_role("button").click()
    assert "지금 붙어 있는 라벨: 해당 없음" in page.locator(".previous").inner_text()


def test_what_another_tab_has_decided_is_not_asked_again(chromium: "Browser") -> None:
    """Both tabs of a person hold the same texts."""
    tabs = chromium.new_context()
    tabs.route("**/*", lambda route: route.fulfill(body="<p></p>", content_type="text/html"))
    page, other = tabs.new_page(), tabs.new_page()
    for tab in (page, other):
        tab.goto("http://card.test/")
    card = Card(page)
    card.hand_out(*list(WORDS.values())[:4])

    def decide(text_id: int, kind: str, scope: str = card.scope, **more: object) -> None:
        act = {"text_id": text_id, "sha256": sha256_of(WORDS[text_id])} | more
        act |= {"kind": kind, "request_id": f"{text_id}{kind}", "order": 1}
        key = f"malmoi/{quote(scope, safe='')}/{act['request_id']}"
        other.evaluate("([key, act]) => localStorage.setItem(key, JSON.stringify(act))", [key, act])

    decide(3, "label", scope="1-1/민수")
    decide(1, "label")
    page.locator(".text").get_by_text("둘", exact=True).wait_for()
    decide(2, "skip")
    page.locator(".text").get_by_text("셋", exact=True).wait_for()
    page.keyboard.press("1")
    assert card.shown() == "넷"
    # With it go those that are nearly the same, where they got the same label.
    card.hand_out("다섯", "여섯", "일곱", first=5, kind=5)
    decide(4, "label")
    page.locator(".text").get_by_text("다섯", exact=True).wait_for()
    decide(5, "label", alike=True, of_kind=5)
    page.locator(".empty").wait_for()
    tabs.close()


def test_words_of_people_are_shown_as_written(page: "Page") -> None:
    attack = (
        "<script>window.hit=1</script><img src=x onerror='window.hit=2'> **굵게** [글](http://a)"
    )
    card = Card(page)
    suggestion = [{"label": "<img src=x onerror='window.hit=3'>", "score": 0.9}]
    card.hand_out(attack, "둘", suggestion=suggestion, model="m", alike=2)
    assert card.shown() == attack
    assert page.get_by_role("button", name="<b>셋째</b>").is_visible()
    assert suggestion[0]["label"] in page.locator(".model").inner_text()
    recent = {"text_id": 9, "text": attack, "state": "labelled", "labels": [attack]}
    card.tell(recent=[recent | {"flagged": False, "note": attack}], failed=attack)
    words = {"text_id": 1, "words": [[0, 8, 1.0], [8, 20, -0.9]]}
    card.tell(words=words | {"sha256": sha256_of("another text")})
    assert page.locator(".text mark").count() == 0
    card.tell(words=words | {"sha256": sha256_of(attack)})
    assert card.shown() == attack and page.locator(".text mark").count() == 2
    tags = page.locator(".card").evaluate(
        "(card) => card.querySelectorAll('img, script, b a').length"
    )
    assert tags == 0 and page.evaluate("window.hit") is None


def test_own_work_is_asked_for_anew_while_it_is_looked_at(page: "Page") -> None:
    card = Card(page)
    card.hand_out(*(f"글 {number}" for number in range(MOST_TEXTS)))

    def label() -> int:
        """One text; how many messages there were before its answer."""
        page.keyboard.press("1")
        message = card.sent()[-1]
        saved = [act["request_id"] for act in message["acts"]]
        before = len(card.sent())
        card.tell(sequence=message["sequence"], saved=saved)
        return before

    before = label()
    assert len(card.sent()) == before
    page.locator("summary", has_text=sentences()["recent"]).click()
    page.wait_for_function("(before) => window.sent.length > before", arg=before)
    assert card.sent()[-1]["recent"] is True
    card.tell(sequence=card.sent()[-1]["sequence"], recent=[])
    before = label()
    assert len(card.sent()) == before + 1 and card.sent()[-1]["recent"] is True


def test_a_suggestion_is_shown_and_sent_but_chosen_by_nobody(page: "Page") -> None:
    card = Card(page)
    close = [{"label": "부정", "score": 0.35}, {"label": "긍정", "score": 0.33}]
    card.hand_out("하나", "둘", suggestion=close, model="빠른 모델", offer="first")
    assert "잘 모릅니다" in page.locator(".model").inner_text()
    suggestion = [{"label": "부정", "score": 0.62}, {"label": "긍정", "score": 0.3}]
    card.hand_out("하나", "둘", renewed=True, suggestion=suggestion, offer="second")
    assert "부정 62% · 긍정 30%" in page.locator(".model").inner_text()
    assert page.locator(".labels [aria-pressed=true]").count() == 0
    page.keyboard.press("Enter")
    assert card.shown() == "하나" and card.acts() == []
    page.keyboard.press("1")
    assert card.acts()[0]["offer"] == "second" and "suggestion" not in card.acts()[0]


def test_a_new_order_brings_its_suggestions_to_the_texts_that_stay(page: "Page") -> None:
    card = Card(page)
    card.hand_out("하나", "둘")
    assert page.locator(".model").is_hidden()
    said = [{"label": "부정", "score": 0.9}, {"label": "긍정", "score": 0.1}]
    card.hand_out("하나", "둘", renewed=True, suggestion=said, offer="of the chosen model")
    assert card.shown() == "하나" and "부정 90%" in page.locator(".model").inner_text()
    page.keyboard.press("2")
    assert card.acts()[0]["offer"] == "of the chosen model"
    assert "부정 90%" in page.locator(".model").inner_text()


def test_more_texts_are_asked_for_before_they_run_out(page: "Page") -> None:
    card = Card(page)
    many = [f"글 {number}" for number in range(100)]
    card.hand_out(*many)
    for _ in range(70):
        page.keyboard.press("1")
        last = card.sent()[-1]
        assert not last["wants"]
        card.tell(saved=[act["request_id"] for act in last["acts"]], sequence=last["sequence"])
    page.keyboard.press("1")
    last = card.sent()[-1]
    assert last["wants"] and len(last["have"]) == 29


def test_of_the_last_texts_more_are_asked_for_until_none_is_left(page: "Page") -> None:
    """The server keeps some of the last texts for others."""
    card = Card(page)
    card.hand_out("하나", "둘", "셋", more=True)
    last = card.sent()[-1]
    assert last["wants"]
    # Nothing new although there are more: not asked again until fewer are here.
    card.tell(sequence=last["sequence"], held=[1, 2, 3], texts=[], more=True)
    assert card.sent()[-1] == last
    for held in ([2, 3], [3], []):
        page.keyboard.press("1")
        last = card.sent()[-1]
        assert last["wants"]
        saved = [act["request_id"] for act in last["acts"]]
        if held:
            card.tell(saved=saved, sequence=last["sequence"], held=held, texts=[], more=True)
    card.tell(saved=saved, sequence=last["sequence"], held=[], texts=[], others=12)
    said = page.locator(".empty").inner_text()
    assert "12건" in said and "10분" in said
    assert len(card.sent()) == last["sequence"]


def test_the_key_on_a_button_is_the_same_whatever_letters_labels_take(page: "Page") -> None:
    """A label that has the letter comes first; the sign stays."""
    card = Card(page)
    shown = {}
    for letter in ("a", "c"):
        card.tell(labels_with=letter)
        shown[letter] = page.locator("[data-do=flag] kbd").inner_text()
    assert shown == {"a": "=", "c": "="}
    assert page.evaluate("window.module.shownCode(['KeyC', 'Equal'])") == "Equal"


def test_the_progress_of_a_project_counts_the_own_labels_too(page: "Page") -> None:
    card = Card(page)
    card.tell(counts={"mine": 6, "open": 8, "total": 10}, annotators=1)
    assert "6 / 10" in page.locator(".progress").inner_text()
    # With two annotators a text is done with the label of the second.
    card.tell(counts={"mine": 6, "open": 10, "total": 10}, annotators=2)
    head = page.locator(".progress").inner_text()
    assert "6" in head and "0 / 10" in head and "2명" in head
    assert page.locator("progress").evaluate("(bar) => bar.value") == pytest.approx(0.3)


def test_without_storage_and_without_random_uuid_it_still_labels(page: "Page") -> None:
    """A browser that forbids storage; plain http, where crypto.randomUUID is missing."""
    page.evaluate(
        """() => {
          Object.defineProperty(window, "localStorage", {get() { throw new Error("no"); }});
          Object.defineProperty(Crypto.prototype, "randomUUID", {value: undefined});
        }"""
    )
    card = Card(page)
    card.hand_out("하나", "둘")
    page.keyboard.press("1")
    acts = [act for one in card.sent() for act in one["acts"]]
    assert card.shown() == "둘" and len(acts[0]["request_id"]) == 32


def test_the_pure_parts(page: "Page") -> None:
    Card(page)
    pace = "window.module.paceOf(Array.from({length: 61}, (_, at) => 1000 * at), 60_000)"
    assert page.evaluate(pace) == 3600
    few = "window.module.paceOf([0, 1000], 120_000)"
    fast = "window.module.paceOf(Array.from({length: 20}, (_, at) => 100 * at), 2_000)"
    assert page.evaluate(few) is None and page.evaluate(fast) is None
    pieces = page.evaluate("window.module.weighted('👍 좋다 함', [[0, 1, 1], [2, 4, -1]])")
    assert json.dumps([one["text"] for one in pieces], ensure_ascii=False) == (
        '["👍", " ", "좋다", " 함"]'
    )
