"""Projects are kept with all their versions, and only their members see or change them."""

import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from malmoi.errors import InputError
from malmoi.labels.agreement import agreement
from malmoi.labels.annotating import Act, own_work, save_acts, take_back
from malmoi.labels.bulk_labels import save_acts_of_others
from malmoi.labels.exporting import export_for, export_table
from malmoi.labels.found_texts import add_texts
from malmoi.labels.leasing import lease_texts, return_leases
from malmoi.labels.model_comparison import model_comparison, texts_behind
from malmoi.labels.near_duplicates import group_alike
from malmoi.labels.people import AccessError, Person
from malmoi.labels.project import (
    NewProject,
    ProjectLabel,
    ProjectSettings,
    new_project_of_task,
)
from malmoi.labels.project_numbers import last_change
from malmoi.labels.projects import (
    ProjectStore,
    archive,
    audit_trail,
    change_guideline,
    change_labels,
    change_settings,
    guideline_of,
    members,
    read_labels,
    read_project,
    set_member,
)
from malmoi.labels.relabelling import (
    latest_relabellings,
    relabel,
    texts_to_decide,
    undo_relabelling,
)
from malmoi.labels.review import (
    adjudicate,
    latest_decisions,
    progress,
    review_counts,
    reviewed_texts,
    texts_to_review,
    texts_with_votes,
)
from malmoi.labels.roles import Role
from malmoi.labels.scores import TextScore, random_sample, scoring_model, write_scores
from malmoi.labels.searching import read_model_views
from malmoi.labels.tasks import read_task
from malmoi.labels.text_import import first_cells, import_texts
from malmoi.labels.training_texts import labelled_texts, texts_to_choose_from
from malmoi.text.reading.sources import source_of_upload
from tests.malmoi.labels.conftest import LOCAL, Make, for_person

MEMOS = Path(__file__).parents[3] / "corpora" / "memos"


def test_a_project_is_kept_with_its_labels_and_found_again(any_url: str) -> None:
    labels = [ProjectLabel(name="긍정", key="p"), ProjectLabel(name="부정", color="#ff0000")]
    ProjectStore(any_url).create(
        Person(name="지은"),
        NewProject(name="리뷰 🙂", labels=labels, guideline="# 기준", kind="multi"),
    )
    store = ProjectStore(any_url)
    (found,) = store.list(Person(name="지은"))
    assert (found.name, found.kind, found.role) == ("리뷰 🙂", "multi", "admin")
    assert (found.guideline, found.guideline_version) == ("# 기준", 1)
    assert found.label_names == ["긍정", "부정"]
    first, second = found.labels
    assert first.key == "p" and second.key == "1" and second.color == "#ff0000"
    assert first.color and first.color != second.color
    assert store.access(Person(name="지은"), "리뷰 🙂").project_id == found.id
    with pytest.raises(InputError, match="another one has"):
        store.create(Person(name="민수"), NewProject(name="리뷰 🙂", labels=labels))


def test_names_that_look_the_same_are_the_same(any_url: str) -> None:
    store = ProjectStore(any_url)
    labels = [ProjectLabel(name="긍정"), ProjectLabel(name="부정")]
    decomposed = unicodedata.normalize("NFD", "영화 평")
    access = store.create(
        Person(name=unicodedata.normalize("NFD", "지은")),
        NewProject(name=decomposed, labels=labels),
    )
    assert store.access(Person(name="지은"), "영화 평").project_id == access.project_id
    with pytest.raises(InputError, match="same name 긍정"):
        twin = ProjectLabel(name=unicodedata.normalize("NFD", "긍정"))
        NewProject(name="둘", labels=[ProjectLabel(name="긍정"), twin])


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("가\x00나", "NUL, found one at position 2"),
        ("가\ud83d", "a lone surrogate.* at position 2"),
    ],
)
def test_what_no_database_holds_is_refused_in_one_line(
    make: Make, broken: str, message: str
) -> None:
    access = make("글 하나")
    attempts: list[Callable[[], object]] = [
        lambda: NewProject(name=broken, labels=[]),
        lambda: Person(name=broken),
        lambda: change_labels(access, [ProjectLabel(name=broken), ProjectLabel(name="부정")]),
        lambda: change_guideline(access, broken),
        lambda: Act(text_id=1, kind="note", note=broken, request_id="1"),
        lambda: Act(text_id=1, kind="skip", request_id=broken),
        lambda: adjudicate(access, 1, ["긍정"], request_id="1", note=broken),
        lambda: write_scores(access, broken, []),
    ]
    for attempt in attempts:
        with pytest.raises(InputError, match=message) as caught:
            attempt()
        assert "\n" not in str(caught.value)


def test_a_task_file_is_opened_as_a_project(any_url: str) -> None:
    task = read_task(MEMOS)
    access = ProjectStore(any_url).create(LOCAL, new_project_of_task(task))
    project = read_project(access)
    assert project.label_names == task.label_names and project.guideline == task.guideline
    assert [label.key for label in project.labels] == [label.key for label in task.labels]


def test_every_version_of_the_guideline_stays(make: Make) -> None:
    access = make("글")
    assert change_guideline(access, "둘째") == 2
    assert change_guideline(access, "둘째") == 2
    assert change_guideline(access, "셋째") == 3
    assert [guideline_of(access, version) for version in (1, 2, 3)] == ["", "둘째", "셋째"]
    assert read_project(access).guideline_version == 3
    with pytest.raises(InputError, match="found 4"):
        guideline_of(access, 4)
    save_acts(access, [Act(text_id=1, kind="label", labels=["긍정"], request_id="1")])
    with pytest.raises(InputError, match="up to 3, found 4"):
        save_acts(access, [Act(text_id=1, kind="skip", request_id="2", guideline_version=4)])


def test_labels_in_use_are_renamed_swapped_added_and_retired(make: Make) -> None:
    access = make("글")
    save_acts(access, [Act(text_id=1, kind="label", labels=["긍정"], request_id="1")])
    good, bad, neutral = read_project(access).labels
    renamed = [
        ProjectLabel(name="부정", id=good.id),
        ProjectLabel(name="긍정", id=bad.id),
        ProjectLabel(name="혼합"),
    ]
    change_labels(access, renamed)
    (work,) = own_work(access)
    assert work.labels == ("부정",)
    assert read_project(access).label_names == ["부정", "긍정", "혼합"]
    with pytest.raises(InputError, match="found '중립'"):
        save_acts(access, [Act(text_id=1, kind="label", labels=["중립"], request_id="2")])
    change_labels(access, [*renamed[:2], ProjectLabel(name="중립")])
    assert neutral.id in {one.id for one in read_project(access).labels if not one.retired}
    decomposed = ProjectLabel(name=unicodedata.normalize("NFD", " 혼합"))
    change_labels(access, [*renamed[:2], decomposed])
    assert read_project(access).label_names == ["부정", "긍정", "혼합"]
    with pytest.raises(InputError, match="each label of the project once"):
        change_labels(access, [renamed[0], renamed[1], ProjectLabel(name="둘째", id=good.id)])
    with pytest.raises(InputError, match="labels of this project, found others: 남"):
        change_labels(access, [ProjectLabel(name="남", id=999), ProjectLabel(name="긍정")])


def test_more_annotators_per_text_open_texts_again(make: Make) -> None:
    access = make("하나", "둘")
    save_acts(access, [Act(text_id=1, kind="label", labels=["긍정"], request_id="1")])
    assert progress(access).finished == 1
    change_settings(access, annotators_per_text=2)
    assert progress(access).finished == 0
    change_settings(access, annotators_per_text=1)
    assert progress(access).finished == 1


def test_a_setting_that_is_changed_leaves_the_others(make: Make) -> None:
    access = make(random_share=0.5, lease_seconds=60, text_order="scores")
    change_settings(access, show_suggestion=False)
    change_settings(access, lease_seconds=90)
    assert read_project(access).settings == ProjectSettings(
        random_share=0.5, lease_seconds=90, text_order="scores", show_suggestion=False
    )
    with pytest.raises(InputError, match=r"random share from 0 to 1, found 2\.0"):
        change_settings(access, random_share=2.0)


def test_what_is_read_is_of_one_moment(make: Make) -> None:
    """An export reads the labels first, then the votes: none may name a label that came between."""
    access = make("글")
    with access.reading() as connection:
        before = read_labels(connection, access.project_id)
        change_labels(access, [*before, ProjectLabel(name="혼합")])
        save_acts(access, [Act(text_id=1, kind="label", labels=["혼합"], request_id="1")])
        assert read_labels(connection, access.project_id) == before
        assert reviewed_texts(access, connection, [1])[0].votes == ()
    assert own_work(access)[0].labels == ("혼합",)


def test_settings_out_of_bounds_are_refused() -> None:
    for wrong in (
        {"annotators_per_text": 0},
        {"random_share": 1.5},
        {"random_share": float("nan")},
        {"lease_seconds": 0},
        {"text_order": "best"},
        {"model": ""},
        {"model": "m" * 1_001},
    ):
        with pytest.raises(InputError, match="expected"):
            ProjectSettings(**wrong)  # type: ignore[arg-type]


def test_suggestions_of_a_model_go_with_its_choice(make: Make) -> None:
    access = make("하나", "둘", text_order="scores", people={"라벨러": "annotator"})
    change_settings(access, model="내 모델")
    write_scores(access, "내 모델", [TextScore(text_id=2, priority=1.0, label="긍정", score=0.9)])
    assert scoring_model(access) == "내 모델"
    change_settings(access, random_share=0.0)
    assert lease_texts(access, 1)[0].suggested_label == "긍정"
    return_leases(access)
    change_settings(access, model=None)
    assert scoring_model(access) is None
    assert lease_texts(access, 1)[0].suggested_label is None
    assert audit_trail(access)[0].details == {"model": ["내 모델", None]}
    # What was learnt from labels stays, whichever model is chosen.
    write_scores(access, "quick-20", [TextScore(text_id=2, priority=1.0)])
    change_settings(access, model="x")
    assert scoring_model(access) == "quick-20"
    with pytest.raises(AccessError):
        change_settings(for_person(access, "라벨러"), model="y")


def test_an_archived_project_is_read_and_not_written(any_url: str, make: Make) -> None:
    access = make("글")
    archive(access)
    store = ProjectStore(any_url)
    assert store.list(LOCAL) == [] and len(store.list(LOCAL, archived=True)) == 1
    label = Act(text_id=1, kind="label", labels=["긍정"], request_id="2")
    writes: list[Callable[[], object]] = [
        lambda: save_acts(access, [Act(text_id=1, kind="skip", request_id="1")]),
        lambda: save_acts_of_others(access, [("지은", label)]),
        lambda: take_back(access, [(1, "3")]),
        lambda: lease_texts(access, 1),
        lambda: adjudicate(access, 1, ["긍정"], request_id="4"),
        lambda: relabel(access, [1], ["긍정"], request_id="5", expected=1),
        lambda: add_texts(access, ["새 글"], "손으로"),
        lambda: import_texts(access, [source_of_upload("b.txt", "새 글".encode())]),
        lambda: write_scores(access, "m", [TextScore(text_id=1, priority=1.0)]),
        lambda: change_settings(access, annotators_per_text=2),
        lambda: change_labels(access, [ProjectLabel(name=one) for one in ("가", "나")]),
        lambda: change_guideline(access, "새 기준"),
        lambda: set_member(access, "지은", "annotator"),
    ]
    before = read_project(access)
    for write in writes:
        with pytest.raises(InputError, match="is archived"):
            write()
    assert read_project(access) == before and own_work(access) == []
    archive(access, away=False)
    save_acts(access, [Act(text_id=1, kind="skip", request_id="1")])


MEMBERS: dict[str, Role] = {"라벨러": "annotator", "검수자": "reviewer", "장": "admin"}


def test_each_role_may_do_its_own_and_what_is_below(make: Make, tmp_path: Path) -> None:
    local = make("글", people=MEMBERS)
    mine, reviewer, admin = (for_person(local, name) for name in MEMBERS)
    for who in (mine, reviewer, admin):
        name = who.person.name
        save_acts(who, [Act(text_id=1, kind="label", labels=["긍정"], request_id=name)])
    for who in (reviewer, admin):
        texts_to_review(who)
        adjudicate(who, 1, ["긍정"], request_id=f"검수 {who.person.name}")
    change_guideline(admin, "새 기준")
    skip = Act(text_id=1, kind="skip", request_id="11")
    reviewing: list[Callable[[], object]] = [
        lambda: texts_to_review(mine),
        lambda: adjudicate(mine, 1, ["긍정"], request_id="9"),
        lambda: members(mine),
        lambda: agreement(mine),
        lambda: review_counts(mine),
        lambda: latest_decisions(mine),
        lambda: last_change(mine, "reviewer"),
        lambda: texts_with_votes(mine, [1]),
        lambda: texts_to_decide(mine, [1]),
        lambda: relabel(mine, [1], ["부정"], request_id="10", expected=1),
        lambda: undo_relabelling(mine, 1),
        lambda: latest_relabellings(mine),
        lambda: read_model_views(mine, [1]),
        lambda: random_sample(mine),
        lambda: labelled_texts(mine),
        lambda: texts_to_choose_from(mine, 1),
        lambda: model_comparison(mine, "scores"),
        lambda: texts_behind(mine, "scores", ("긍정", "부정"), in_sample=False),
        lambda: export_table(mine, tmp_path / "a.csv"),
        lambda: export_for(mine, tmp_path / "a.jsonl", "doccano"),
    ]
    ruling: list[Callable[[], object]] = [
        lambda: change_guideline(reviewer, "x"),
        lambda: change_settings(reviewer, annotators_per_text=9),
        lambda: change_labels(reviewer, []),
        lambda: archive(reviewer),
        lambda: set_member(reviewer, "검수자", "admin"),
        lambda: import_texts(reviewer, [source_of_upload("a.txt", "가".encode())]),
        lambda: write_scores(reviewer, "m", [TextScore(text_id=1, priority=1.0)]),
        lambda: audit_trail(reviewer),
        lambda: save_acts_of_others(reviewer, [("남", skip)]),
        lambda: first_cells(reviewer, 1),
        lambda: group_alike(reviewer),
    ]
    for attempt in reviewing:
        with pytest.raises(AccessError, match=r"expected the role reviewer .* 라벨러 as annotator"):
            attempt()
    for attempt in ruling:
        with pytest.raises(AccessError, match=r"expected the role admin .* 검수자 as reviewer"):
            attempt()
    assert list(tmp_path.glob("a.*")) == []
    assert read_project(admin).guideline == "새 기준"
    assert members(admin)["검수자"] == "reviewer"


def test_a_stranger_sees_nothing_and_learns_nothing(any_url: str, make: Make) -> None:
    local = make("비밀 글", name="비밀", people=MEMBERS)
    store, stranger = ProjectStore(any_url), Person(name="남")
    assert store.list(stranger) == []
    said = []
    for project in (local.project_id, 999, "비밀", "없음"):
        with pytest.raises(AccessError) as caught:
            store.access(stranger, project)
        said.append(str(caught.value).replace(str(project), "…"))
    assert len(set(said)) == 1
    forged = for_person(local, "남")
    for attempt in (
        lambda: read_project(forged),
        lambda: progress(forged),
        lambda: own_work(forged),
        lambda: save_acts(forged, [Act(text_id=1, kind="skip", request_id="1")]),
    ):
        with pytest.raises(AccessError, match="expected a member of project"):
            attempt()


def test_a_member_who_is_taken_away_is_a_stranger_and_the_last_admin_stays(make: Make) -> None:
    local = make("글", people=MEMBERS)
    mine = for_person(local, "라벨러")
    save_acts(mine, [Act(text_id=1, kind="label", labels=["긍정"], request_id="1")])
    set_member(local, "라벨러", None)
    with pytest.raises(AccessError):
        save_acts(mine, [Act(text_id=1, kind="label", labels=["부정"], request_id="2")])
    assert progress(local).finished == 1
    set_member(local, "장", "annotator")
    with pytest.raises(InputError, match="관리자 is the only admin"):
        set_member(local, "관리자", None)
    assert "관리자" in members(local)


def test_the_audit_trail_says_who_changed_what(make: Make) -> None:
    local = make("글", people={"장": "admin"})
    admin = for_person(local, "장")
    change_settings(admin, annotators_per_text=3)
    change_guideline(admin, "기준")
    set_member(admin, "지은", "annotator")
    adjudicate(admin, 1, ["부정"], request_id="1")
    adjudicate(admin, 1, ["부정"], request_id="1")
    trail = [one for one in reversed(audit_trail(admin)) if one.person == "장"]
    assert [(one.action, dict(one.details)) for one in trail] == [
        ("settings", {"annotators_per_text": [1, 3]}),
        ("guideline", {"version": 2}),
        ("member", {"person": "지은", "role": "annotator"}),
        ("adjudicate", {"text": 1, "labels": ["부정"]}),
    ]
    assert all(one.created_at.tzinfo is not None for one in trail)
