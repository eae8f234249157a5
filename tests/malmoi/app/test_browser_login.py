"""Login by OpenID Connect against a real local provider, and what each role may see."""

import http.client
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

import oidc_provider_mock
import pytest

from malmoi.app.login import may_come_in, verified_address
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel
from malmoi.labels.projects import ProjectStore, set_member
from tests.malmoi.app.servers import Server, free_port, new_page, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

ADMIN, ANNOTATOR = "minsu@example.com", "jieun@example.com"


@pytest.fixture(scope="module")
def login_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app with login; 우리 작업 has an annotator, 남의 작업 only its admin."""
    workplace = tmp_path_factory.mktemp("workplace")
    store = ProjectStore(f"sqlite:///{workplace}/runs/labels.db")
    admin = Person(name=ADMIN)
    labels = [ProjectLabel(name="긍정"), ProjectLabel(name="부정")]
    ours = store.create(admin, NewProject(name="우리 작업", labels=labels))
    set_member(ours, ANNOTATOR, "annotator")
    store.create(admin, NewProject(name="남의 작업", labels=labels))
    people = [
        oidc_provider_mock.User(sub=name, claims={"email": name, **verified})
        for name, verified in (
            (ADMIN, {"email_verified": True}),
            (ANNOTATOR, {"email_verified": True}),
            ("guess@example.com", {"email_verified": False}),
            ("said@example.com", {}),
            ("stranger@elsewhere.test", {"email_verified": True}),
        )
    ]
    port = free_port()
    with oidc_provider_mock.run_server_in_thread(user_claims=people) as provider:
        secrets = workplace / ".streamlit" / "secrets.toml"
        secrets.parent.mkdir()
        secrets.write_text(
            "[auth]\n"
            f'redirect_uri = "http://127.0.0.1:{port}/oauth2callback"\n'
            'cookie_secret = "a secret of a test, as long as it has to be"\n'
            'client_id = "malmoi"\n'
            'client_secret = "secret"\n'
            f'server_metadata_url = "http://localhost:{provider.server_port}'
            '/.well-known/openid-configuration"\n'
            '[malmoi]\nallowed = ["example.com"]\n'
        )
        with serving(workplace, port=port) as app:
            yield app


@pytest.fixture
def page(chromium: "Browser") -> "Page":
    return new_page(chromium)


def log_in(page: "Page", login_server: Server, name: str, path: str = "") -> None:
    page.goto(f"{login_server.address}{path}")
    page.get_by_role("button", name="로그인").click()
    page.get_by_role("button", name=name, exact=True).click()
    page.wait_for_url(f"{login_server.address}/**")


def test_nothing_is_seen_before_the_login(page: "Page", login_server: Server) -> None:
    page.goto(f"{login_server.address}/settings?project={quote('우리 작업')}")
    page.get_by_role("button", name="로그인").wait_for()
    assert page.get_by_text("우리 작업").count() == 0
    assert page.get_by_test_id("stSidebarNav").count() == 0


def test_a_member_sees_their_projects_only(page: "Page", login_server: Server) -> None:
    log_in(page, login_server, ANNOTATOR)
    page.get_by_text(ANNOTATOR).wait_for()
    # A project that is named in the address is opened for its members only.
    page.goto(f"{login_server.address}/?project={quote('남의 작업')}")
    page.get_by_text(ANNOTATOR).wait_for()
    page.get_by_role("radio", name="내 작업").wait_for()
    assert page.get_by_test_id("stSidebar").get_by_role("combobox").first.input_value() == (
        "우리 작업"
    )
    # It stands where it is said that there is none, and nowhere else.
    page.get_by_text("남의 작업").wait_for()
    assert "볼 수 없습니다" in page.get_by_text("남의 작업").inner_text()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("guess@example.com", "확인된 전자우편 주소가 없습니다"),
        # As Entra ID does it: nothing is said of whether the address is theirs.
        ("said@example.com", "확인된 전자우편 주소가 없습니다"),
        ("stranger@elsewhere.test", "들어올 수 없는 계정입니다"),
    ],
)
def test_an_address_that_is_not_verified_or_not_listed_is_nobody(
    page: "Page", login_server: Server, name: str, said: str
) -> None:
    log_in(page, login_server, name)
    page.get_by_text(said).wait_for()
    assert page.get_by_test_id("stSidebarNav").count() == 0


@pytest.mark.parametrize(
    ("claims", "address"),
    [
        ({"email_verified": True}, "jieun@example.com"),
        ({"email_verified": "true"}, "jieun@example.com"),
        ({}, ""),
        ({"email_verified": None}, ""),
        ({"email_verified": "yes"}, ""),
        ({"email_verified": 1}, ""),
        ({"iss": "https://login.test/tenant/v2.0"}, "jieun@example.com"),
        ({"iss": "https://login.test/other/v2.0"}, ""),
        ({"iss": "https://login.test/tenant/v2.0", "email_verified": False}, ""),
        ({"email_verified": True, "email": ""}, ""),
    ],
)
def test_whose_address_it_is(claims: dict[str, object], address: str) -> None:
    trusted = ["https://login.test/tenant/v2.0"]
    assert verified_address({"email": " JiEun@example.com"} | claims, trusted) == address


def test_who_may_come_in() -> None:
    listed = ["Example.com", "@two.test", "min@three.test"]
    inside = ("a@example.com", "a@two.test", "min@three.test")
    outside = ("a@notexample.com", "a@sub.example.com", "a@three.test", "example.com@x.test")
    assert all(may_come_in(one, listed) for one in inside)
    assert not any(may_come_in(one, listed) for one in outside)
    assert may_come_in("a@example.com", None) and not may_come_in("a@example.com", [])


def test_another_site_cannot_speak_to_the_app(login_server: Server) -> None:
    """A page of another site that a visitor has open sends their cookies along."""
    assert _handshake(login_server, f"http://127.0.0.1:{login_server.port}") == 101
    assert _handshake(login_server, "http://evil.example") == 403


def _handshake(login_server: Server, origin: str) -> int:
    """The answer to a page of this origin that opens the app's WebSocket."""
    connection = http.client.HTTPConnection("127.0.0.1", login_server.port, timeout=60)
    asked = {
        "Origin": origin,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    connection.request("GET", "/_stcore/stream", headers=asked)
    status = connection.getresponse().status
    connection.close()
    return status
