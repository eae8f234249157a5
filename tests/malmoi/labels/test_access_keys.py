"""A key opens one project as one person, until it is taken back; its secret is nowhere."""

from typing import Any

import pytest
from sqlalchemy import select

from malmoi.commands.labels import LabelsSettings, main
from malmoi.errors import InputError
from malmoi.labels.access_keys import list_keys, make_key, person_of, withdraw
from malmoi.labels.people import AccessError
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore, members, read_project, set_member
from malmoi.labels.tables import AccessKeyRow
from tests.malmoi.labels.conftest import LOCAL


def test_a_key_opens_one_project_until_it_is_taken_back(any_url: str) -> None:
    store = ProjectStore(any_url)
    labels = (ProjectLabel(name="가"), ProjectLabel(name="나"))
    first, other = (store.create(LOCAL, NewProject(name=one, labels=labels)) for one in "12")
    secret = make_key(first, " 지은 ", "reviewer", "invitation")
    token = make_key(first, "기계", "annotator", "token")
    set_member(other, "지은", "admin")
    with store.engine.connect() as connection:
        kept: list[Any] = [*connection.execute(select(AccessKeyRow.__table__))]
    assert secret not in str(kept) and token not in str(kept)

    person = person_of(store, secret, "invitation")
    assert person is not None and person.name == "지은"
    assert person_of(store, secret, "token") is None
    assert person_of(store, "", "invitation") is None
    # Whoever could make a link in one project is nobody in another, where the name is an admin's.
    assert [project.name for project in store.list(person)] == ["1"]
    with pytest.raises(AccessError):
        store.access(person, "2")
    with pytest.raises(AccessError):
        make_key(store.access(person, "1"), "또", "admin", "invitation")

    (key,) = list_keys(first, "invitation")
    assert (key.person, key.role, key.created_by) == ("지은", "reviewer", LOCAL.name)
    assert key.last_used_at is not None
    withdraw(first, key.id)
    assert person_of(store, secret, "invitation") is None
    assert list_keys(first, "invitation") == [] and members(first)["지은"] == "reviewer"
    with pytest.raises(InputError, match="a key of this project"):
        withdraw(other, key.id)
    # Who is taken out has no key that opens again once they are back.
    set_member(first, "기계", None)
    set_member(first, "기계", "annotator")
    assert person_of(store, token, "token") is None


def test_whoever_runs_the_server_makes_links_on_it(
    any_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after they have lost their own."""
    store = ProjectStore(any_url)
    labels = (ProjectLabel(name="가"), ProjectLabel(name="나"))
    store.create(LOCAL, NewProject(name="1", labels=labels))
    for person, role in ((None, "admin"), ("지은", "reviewer")):
        main(LabelsSettings(action="invitation", database=any_url, person=person, role=role))
        secret = capsys.readouterr().out.strip().removeprefix("/join?invite=")
        found = person_of(store, secret, "invitation")
        assert found is not None and read_project(store.access(found, "1")).role == role
    # A key without a role makes nobody less than they are.
    main(LabelsSettings(action="token", database=any_url, person="지은"))
    assert members(store.access(LOCAL, "1"))["지은"] == "reviewer"
    capsys.readouterr()
    main(LabelsSettings(action="invitation", database=any_url, person="지은", withdraw=True))
    assert person_of(store, secret, "invitation") is None
    with pytest.raises(InputError, match="whose invitation"):
        main(LabelsSettings(action="invitation", database=any_url, withdraw=True))
