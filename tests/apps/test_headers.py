"""Headers of all answers: private pages are not kept, TLS stays on, and pages use only what they need."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from asgiref.sync import async_to_sync
from django.conf import LazySettings, settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.test import Client, RequestFactory
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.lib.checkout import CHECKOUT
from hekla.pages.frame import headers
from hekla.project.static_version import static_version

As = Callable[[User], Client]
PATHS = ["/", "/jobs/", "/accounts/me/", "/nowhere/", "/accounts/sign-in/"]


@pytest.mark.parametrize("path", PATHS)
def test_pages_are_private_and_not_kept(people: People, as_: As, path: str) -> None:
    for client in (as_(people.alice), Client()):
        answer = client.get(path)
        directives = answer.headers["Cache-Control"].split(", ")
        assert {"private", "no-store"} <= set(directives)
        assert "camera=()" in answer.headers["Permissions-Policy"]
        assert "publickey-credentials-get=(self)" in answer.headers["Permissions-Policy"]


def test_page_not_found_has_the_navigation_of_people_who_are_signed_in(people: People, as_: As) -> None:
    for client, has_navigation in ((as_(people.alice), True), (Client(), False)):
        answer = client.get("/nowhere/")
        page = answer.content.decode()
        assert (answer.status_code, "data-nav" in page, people.alice.username in page) == (404, *[has_navigation] * 2)


def test_api_responses_are_revalidated(people: People, as_: As) -> None:
    answer = as_(people.alice).get("/api/v1/jobs")
    assert answer.headers["Cache-Control"] == "private, no-cache"
    again = as_(people.alice).get("/api/v1/jobs", headers={"if-none-match": answer.headers["ETag"]})
    assert (again.status_code, again.headers["Cache-Control"]) == (304, "private, no-cache")
    assert Client().get("/api/v1/jobs").headers["Cache-Control"] == "private, no-cache"


@pytest.mark.parametrize(
    ("address", "caching"),
    [
        (f"/static/{settings.STATIC_VERSION}/", "max-age=31536000, public, immutable"),
        ("/static/0123456789ab/", "no-cache"),
        ("/static/", "max-age=60, public"),
    ],
)
def test_static_files_are_kept_by_their_version(db: None, address: str, caching: str) -> None:
    """Pages of another version, from before an upgrade or of another host, get what this one has."""
    for name in ("bundles/console.css", "vendor/plotly-basic.min.js", "fonts/public-sans-latin-wght-normal.woff2"):
        answer = Client().get(f"{address}{name}")
        assert (answer.status_code, answer.headers["Cache-Control"]) == (200, caching)
        mark = {"if-none-match": answer.headers.get("ETag", "")}
        unchanged = mark if mark["if-none-match"] else {"if-modified-since": answer.headers["Last-Modified"]}
        again = Client().get(f"{address}{name}", headers=unchanged)
        assert (again.status_code, again.headers["Cache-Control"]) == (304, caching)
    missing = Client().get(f"{address}js/none.js")
    assert (missing.status_code, missing.headers["Cache-Control"]) == (404, "private, no-store")


def test_pages_and_their_scripts_name_files_of_this_version(people: People, as_: As) -> None:
    page = as_(people.alice).get("/").content.decode()
    assert set(re.findall(r'"(/static/[^/"]+/)', page)) == {settings.STATIC_URL}
    scripts = [path.read_text() for path in (CHECKOUT / "static" / "js").glob("*.js")]
    assert not [name for text in scripts for name in re.findall(r"""["'`](/static/\S*)""", text)]


def test_version_follows_the_contents(tmp_path: Path) -> None:
    (tmp_path / "css").mkdir()
    file = tmp_path / "css" / "base.css"
    file.write_text("a {}")
    before = static_version(tmp_path)
    file.write_text("b {}")
    assert static_version(tmp_path) != before
    file.write_text("a {}")
    assert static_version(tmp_path) == before
    file.rename(tmp_path / "css" / "other.css")
    assert static_version(tmp_path) != before


@pytest.mark.parametrize(("seconds", "expected"), [(0, None), (3600, "max-age=3600")])
def test_hsts_follows_the_setting(db: None, settings: LazySettings, seconds: int, expected: str | None) -> None:
    settings.HSTS_SECONDS = seconds
    assert Client().get("/accounts/sign-in/").headers.get("Strict-Transport-Security") == expected


@pytest.mark.parametrize(("address", "seconds"), [("https://hekla.example.org", 365 * 24 * 3600), ("http://[::1]", 0)])
def test_hsts_is_on_by_default_with_an_https_address(address: str, seconds: int) -> None:
    env = {"HEKLA_PUBLIC_URL": address, "PYTHONPATH": str(CHECKOUT / "platform")}
    argv = [sys.executable, "-c", "from hekla.project import settings; print(settings.HSTS_SECONDS)"]
    done = subprocess.run(argv, env=os.environ | env, capture_output=True, text=True, check=True)
    assert int(done.stdout) == seconds


def test_headers_of_a_view_stay(settings: LazySettings) -> None:
    def view(_request: HttpRequest) -> HttpResponse:
        return HttpResponse(headers={"Cache-Control": "max-age=5"})

    async def later(request: HttpRequest) -> HttpResponse:
        return view(request)

    def call(respond: Any) -> HttpResponseBase:
        response: HttpResponseBase = respond(RequestFactory().get("/"))
        return response

    for answer in (call(headers.add_headers(view)), call(async_to_sync(cast("Any", headers.add_headers(later))))):
        assert answer.headers["Cache-Control"] == "max-age=5"
        assert answer.headers["Permissions-Policy"] == headers.PERMISSIONS
