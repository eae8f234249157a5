"""What the labelling card does with acts that the server cannot save, on a bare page."""

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from malmoi.labels.stored_text import sha256_of
from tests.malmoi.app.bare_card import Card, bare_page, named

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture
def page(chromium: "Browser") -> "Page":
    return bare_page(chromium)


def test_a_refused_act_is_told_and_kept_until_it_is_answered(page: "Page") -> None:
    card = Card(page)
    card.hand_out("하나", "둘")
    page.keyboard.press("1")
    (act,) = card.acts()
    page.evaluate("window.malmoi = {drawAnew: () => void (window.drawnAnew = true)}")
    card.tell(refused=[{"id": act["request_id"], "reason": "expected a label"}])
    assert "expected a label" in page.get_by_role("alert").inner_text()
    assert "저장됨" not in page.locator(".saving").inner_text()
    # The labels on the page may be those of yesterday: it is drawn with those of now.
    assert page.evaluate("window.drawnAnew") is True
    assert page.get_by_role("button", name="되돌리기").is_disabled()
    # A failure of the moment refuses nothing.
    page.keyboard.press("2")
    card.tell(failed="the label database could not do it")
    assert "이 브라우저에 두고 다시 보냅니다: the label" in page.get_by_role("alert").inner_text()
    refused = page.locator(".refused li")
    assert refused.all_inner_texts() == ["긍정\n하나\nexpected a label\n다시 라벨 붙이기\n버리기"]
    # It outlives a reload, and is not sent by itself.
    page.reload()
    card = Card(page)
    card.hand_out("셋", first=3)
    (waiting,) = [one for message in card.sent() for one in message["acts"]]
    assert waiting["text_id"] == 2 and refused.count() == 1
    refused.get_by_role("button", name="다시 라벨 붙이기").click()
    assert card.shown() == "하나"
    page.keyboard.press("2")
    assert refused.count() == 0 and card.shown() == "셋"
    again = card.acts()[-1]
    assert (again["text_id"], named([again])) == (1, [["부정"]])
    reasons = [{"id": one["request_id"], "reason": "no"} for one in card.acts()]
    card.tell(refused=reasons, sequence=card.sent()[-1]["sequence"])
    assert refused.count() == 2 and page.locator(".card").get_attribute("data-unsaved") == "0"
    page.get_by_role("button", name="모두 다시 보내기").click()
    assert refused.count() == 0
    ids = [one["id"] for one in reasons]
    assert [act["request_id"] for act in card.sent()[-1]["acts"]] == ids
    card.tell(refused=reasons, sequence=card.sent()[-1]["sequence"])
    for _ in ids:
        refused.get_by_role("button", name="버리기").first.click()
    assert card.acts() == [] and page.locator(".refused").is_hidden()


def test_the_undo_of_a_refused_label_leaves_nothing_to_answer(page: "Page") -> None:
    card = Card(page)
    card.hand_out("하나", "둘")
    page.keyboard.press("1")
    page.keyboard.press("Backspace")
    page.keyboard.press("2")
    first, undo, second = card.acts()
    reasons = [{"id": one["request_id"], "reason": "no"} for one in (first, undo)]
    card.tell(refused=reasons, saved=[second["request_id"]])
    assert card.acts() == [] and page.locator(".refused").is_hidden()


def test_acts_that_an_earlier_version_has_kept_are_sent_and_shown_as_refused(page: "Page") -> None:
    old = {"kind": "label", "labels": ["부정"], "text_id": 7, "request_id": "old", "order": 1}
    key = f"malmoi/{quote('1-1/지은', safe='')}/old"
    page.evaluate("([key, act]) => localStorage.setItem(key, JSON.stringify(act))", [key, old])
    card = Card(page)
    card.hand_out("하나")
    assert card.sent()[-1]["acts"] == [old]
    card.tell(refused=[{"id": "old", "reason": "no"}], sequence=card.sent()[-1]["sequence"])
    assert page.locator(".refused li").all_inner_texts() == ["부정\n글 7번\nno\n버리기"]


def test_a_text_that_is_another_one_now_is_replaced_and_its_label_goes_nowhere_else(
    page: "Page",
) -> None:
    """As where a backup was put back, and other texts have got the ids of those on the page."""
    card = Card(page)
    card.hand_out("하나", "둘")
    page.keyboard.press("1")
    card.hand_out("셋", "넷")
    assert card.shown() == "셋"
    page.keyboard.press("1")
    assert card.shown() == "넷"
    assert [act["sha256"] for act in card.acts()] == [sha256_of("하나"), sha256_of("셋")]


def test_what_waits_in_another_project_is_told(page: "Page") -> None:
    card = Card(page)
    card.hand_out("하나", "둘")
    page.keyboard.press("1")
    card.scope = "2-1/지은"
    card.hand_out("셋", first=9)
    assert "1건은 아직 저장되지 않았습니다" in page.get_by_role("alert").inner_text()
