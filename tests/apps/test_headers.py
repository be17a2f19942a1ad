"""Headers of all answers: private pages are not kept, TLS stays on, and pages use only what they need."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, cast

import pytest
from asgiref.sync import async_to_sync
from django.conf import LazySettings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.test import Client, RequestFactory
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.lib.checkout import CHECKOUT
from hekla.pages.frame import headers

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


def test_api_responses_are_revalidated(people: People, as_: As) -> None:
    answer = as_(people.alice).get("/api/v1/jobs")
    assert answer.headers["Cache-Control"] == "private, no-cache"
    again = as_(people.alice).get("/api/v1/jobs", headers={"if-none-match": answer.headers["ETag"]})
    assert (again.status_code, again.headers["Cache-Control"]) == (304, "private, no-cache")
    assert Client().get("/api/v1/jobs").headers["Cache-Control"] == "private, no-cache"


def test_static_files_are_kept(db: None) -> None:
    answer = Client().get("/static/js/app.js")
    assert answer.status_code == 200
    assert "public" in answer.headers["Cache-Control"]


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
