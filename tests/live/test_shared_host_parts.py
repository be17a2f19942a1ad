"""Sessions at paths of one host: what of a response passes, and which paths lead into a session."""

import pytest

from hekla.live.proxy.headers import Destination, Header, response_headers
from hekla.live.proxy.paths import split_path
from hekla.workbench import pod_script

SLUG = "a" * 26
MOUNT = b"/" + SLUG.encode()
OTHER = b"b" * 26
SHARED = Destination(b"localhost:8080", b"https://tools.example.org", mount=MOUNT)
OWN = frozenset({b"__Secure-own", b"__Host-browser", b"__Host-hekla_session"})


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        (MOUNT, b""),
        (MOUNT + b"/", b"/"),
        (MOUNT + b"//a%20b/..c/%2fd", b"//a%20b/..c/%2fd"),
        (MOUNT + b"/100%25/...", b"/100%25/..."),
    ],
)
def test_path_of_a_session_names_it(path: bytes, rest: bytes) -> None:
    assert split_path(path) == (SLUG, rest)


@pytest.mark.parametrize(
    "path",
    [
        *(b"", b"/", b"//", b"*", OTHER, b"/short/", b"/" + MOUNT + b"/", MOUNT + b"x/", MOUNT.upper() + b"/"),
        *(b"/%61" + MOUNT[2:] + b"/", b"/.hekla/enter", MOUNT + b"/./x", MOUNT + b"/..", b"/../.." + MOUNT + b"/"),
        *(MOUNT + dots + OTHER for dots in (b"/../", b"/%2e%2e/", b"/.%2E/", b"/..%2f", b"/%2e%2e%2f", b"/x/../../")),
        *(MOUNT + dots + OTHER for dots in (b"/..\\", b"/..%5c", b"/..;x/", b"/..%3b/", b"/%252e%252e/", b"/..%252f")),
        MOUNT + b"/%2525252525252e",
    ],
)  # fmt: skip
def test_path_that_others_may_read_as_another_one_leads_nowhere(path: bytes) -> None:
    assert split_path(path) == ("", b"")


@pytest.mark.parametrize(
    ("cookie", "passed"),
    [
        (b"a=b", b"a=b; Path=%b/"),
        (b"a=b; Path=/", b"a=b; Path=%b/"),
        (b"a=b; path=/x; HttpOnly; DOMAIN=example.org", b"a=b; HttpOnly; Path=%b/x"),
        (b"a=b; Path=/%b/; Secure" % OTHER, b"a=b; Secure; Path=%%b/%b/" % OTHER),
        (b"a=b; Path=%b/x" % MOUNT, b"a=b; Path=%b/x"),
        (b"a=b; Path=%bx" % MOUNT, b"a=b; Path=%%b%bx" % MOUNT),
        (b"a=b; Path=/x; Path=/; Path=", b"a=b; Path=%b/"),
        (b"a=b; Path=x", b"a=b; Path=%b/"),
        (b"__Host-a=b; Path=/; Secure", b""),
        (b" __host-a=b; Path=/; Secure", b""),
        (b"=a=b; Path=/", b""),
        (b"a; Path=/", b""),
        (b"a=b\x01; Path=/", b""),
        *((name + b"=x; Path=/", b"") for name in OWN),
    ],
)
def test_cookies_of_a_tool_stay_below_its_path(cookie: bytes, passed: bytes) -> None:
    found = response_headers([(b"set-cookie", cookie)], SHARED, OWN)
    assert found == ([(b"set-cookie", passed % MOUNT)] if passed else [])


@pytest.mark.parametrize(
    ("address", "passed"),
    [
        (b"/", b"%b/"),
        (b"/x?y=/z", b"%b/x?y=/z"),
        (b"x/y", b"x/y"),
        (b"http://localhost:8080", b"%b/"),
        (b"http://localhost:8080/x", b"%b/x"),
        (b"https://tools.example.org/x", b"%b/x"),
        (b"https://tools.example.org%b/x" % MOUNT, b"%b/x"),
        (b"https://tools.example.org/%b/" % OTHER, b"%%b/%b/" % OTHER),
        (b"//other.example/x", b"%b//other.example/x"),
        (b"http://localhost:8080//other.example", b"%b//other.example"),
        (b"/\\other.example", b"%b/\\other.example"),
        (b"\\\\other.example", b"%b\\\\other.example"),
        (b"https://example.com/", b"https://example.com/"),
    ],
)
def test_redirects_stay_below_the_path_of_the_session(address: bytes, passed: bytes) -> None:
    expected = passed % MOUNT if b"%b" in passed else passed
    assert response_headers([(b"location", address)], SHARED, OWN) == [(b"location", expected)]


def test_tools_that_get_whole_paths_or_demand_a_secret_one_are_below_it_too() -> None:
    lab = Destination(b"localhost:8080", b"https://tools.example.org", mount=MOUNT, prefix=MOUNT)
    board = Destination(b"localhost:8080", b"https://tools.example.org", mount=MOUNT, prefix=b"/secret")
    for destination, address in ((lab, MOUNT + b"/lab?"), (board, b"/secret/lab?")):
        assert response_headers([(b"location", address)], destination, OWN) == [(b"location", MOUNT + b"/lab?")]
    request = {"tool": "jupyterlab", "session": "x", "base": MOUNT.decode()}
    assert f"--ServerApp.base_url={MOUNT.decode()}/" in pod_script._options(request, "127.0.0.1", 8888)
    assert not [one for one in pod_script._options(request | {"base": ""}, "127.0.0.1", 8888) if "base_url" in one]


def test_what_browsers_keep_for_a_whole_host_does_not_pass() -> None:
    lasting = ["NEL", "Report-To", "Service-Worker-Allowed", "Strict-Transport-Security", "Clear-Site-Data", "Alt-Svc"]
    lasting += ["Secure-Session-Registration"]
    headers: list[Header] = [*((name.lower().encode(), b"x") for name in lasting), (b"etag", b"x")]
    assert response_headers(headers, SHARED, OWN) == [(b"etag", b"x")]
