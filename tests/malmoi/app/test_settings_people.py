"""설정 → 사람 and 백업: names that are invited and joined, a copy that is gone back to."""

import unicodedata
from pathlib import Path

import pytest
import streamlit as st

from malmoi.labels.access_keys import list_keys, person_of
from malmoi.labels.backup import days_kept
from malmoi.labels.projects import audit_trail, members, set_member
from malmoi.labels.review import progress, texts_with_votes
from tests.malmoi.app.pages import open_page, shown
from tests.malmoi.app.project_pages import by_label, made, store, vote


@pytest.fixture(autouse=True)
def own_server() -> None:
    st.cache_data.clear()
    st.cache_resource.clear()


def test_names_are_invited_and_joined(workplace: Path) -> None:
    access = made("하나", "둘", "셋")
    vote(access, "민수", ["긍정", "부정"])
    vote(access, "민수 (집)", ["부정", "부정", "중립"])
    page = open_page("settings", section="people")
    assert "구성원이 아닌 사람" in shown(page)
    page.selectbox(key=f"role-{access.project_id}-민수-None").select("reviewer").run()
    page.button(key=f"invite-{access.project_id}-민수-None").click().run()
    assert not page.exception and members(access)["민수"] == "reviewer"
    links = [one.value for one in page.code]
    person = person_of(store(), links[-1].rpartition("=")[2], "invitation")
    assert person is not None and person.name == "민수"
    # Who has a link needs no other one; who has none can get it.
    keys = [one.key for one in page.button]
    assert f"invite-{access.project_id}-민수-reviewer" not in keys
    assert f"invite-{access.project_id}-민수 (집)-None" in keys

    # The link of whoever runs the server lets this browser in alone once it is made anew.
    own = links[0].rpartition("=")[2]
    assert person_of(store(), own, "invitation") is not None
    page.button(key="owner-link").click().run()
    assert person_of(store(), own, "invitation") is None

    page.selectbox(key="join-gone").select("민수 (집)").run()
    page.selectbox(key="join-stays").select("민수").run()
    assert "글 3건과 결정 0건" in shown(page)
    assert "2건이고, 그중 1건은" in shown(page)
    assert by_label(page.button, "합치기").disabled
    assert set(members(access)) == {"지은", "민수"} and progress(access).disagreeing == 1
    page.checkbox(key="join-sure-민수 (집)-민수").check().run()
    by_label(page.button, "합치기").click().run()
    assert not page.exception and "이제 모두 민수 님의" in shown(page)
    votes = [one.votes[0] for one in texts_with_votes(access, [1, 2, 3])]
    assert [(one.annotator, one.labels) for one in votes] == [
        ("민수", ("부정",)),
        ("민수", ("부정",)),
        ("민수", ("중립",)),
    ]
    assert [key.person for key in list_keys(access, "invitation")] == ["민수"]
    assert audit_trail(access)[0].action == "join people"


def test_a_member_who_gets_another_key_keeps_their_role(workplace: Path) -> None:
    access = made("하나")
    set_member(access, "민수", "reviewer")
    for section, form, field in (
        ("people", "member", "초대할 사람"),
        ("programs", "token", "토큰 주인"),
    ):
        page = open_page("settings", section=section)
        by_label(page.text_input, field).input(unicodedata.normalize("NFD", "민수"))
        key = f"FormSubmitter:{form}-{access.project_id}"
        next(one for one in page.button if (one.key or "").startswith(key)).click().run()
        assert not page.exception and members(access)["민수"] == "reviewer"
    assert [len(list_keys(access, kind)) for kind in ("invitation", "token")] == [1, 1]


def test_a_copy_is_gone_back_to(workplace: Path) -> None:
    access = made("하나", "둘", "셋")
    vote(access, "민수", ["긍정"])
    page = open_page("settings", section="backup")
    page.number_input(key="backup_days").set_value(7).run()
    assert days_kept(workplace / "backups") == 7
    page.button(key="backup").click().run()
    (copy,) = (workplace / "backups").glob("*.db")
    vote(access, "수아", ["부정", "부정"])
    page.run()
    page.selectbox(key="backup_copy").select(copy).run()
    assert "라벨·건너뛰기·표시·메모 2건" in shown(page) and "사람: 수아" in shown(page)
    assert page.button(key="backup_back").disabled and progress(access).finished == 2
    page.checkbox(key=f"backup_sure_{copy.name}").check().run()
    page.button(key="backup_back").click().run()
    assert not page.exception and "그대로 되돌렸습니다" in shown(page)
    assert progress(access).finished == 1
    assert len(list((workplace / "backups").glob("before-going-back-*.db"))) == 1
