"""Headers of all answers: private pages are not kept, TLS stays on, and pages use only what they need."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from asgiref.sync import async_to_sync
from django.conf import LazySettings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.test import Client, RequestFactory
from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.pages.frame import headers
from hekla.project.config import Config

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


def test_hsts_is_on_by_default_with_an_https_address(settings: LazySettings) -> None:
    assert Config().hsts_seconds == 365 * 24 * 3600
    assert settings.HSTS_SECONDS == 0  # the address of the tests has no TLS


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
