"""Views that are imported when they are first opened behave like the functions that they stand for."""

import subprocess
import sys

import pytest
from django.urls import get_resolver, resolve, reverse

from hekla.lib.checkout import CHECKOUT
from hekla.lib.late_imports import import_alone
from hekla.pages.lazy_views import LazyUrls, LazyView, LazyViews, check, lazy_views

MARKED = LazyView("hekla.pages.signin.views", "use_link")
WITHOUT_IMPORT = """
import sys, django
from django.conf import settings
settings.configure(ROOT_URLCONF=__name__)
django.setup()
from django.urls import path, reverse
from hekla.pages.lazy_views import LazyUrls, LazyViews

views = LazyViews("no.such.module")
urlpatterns = [path("there/<int:pk>/", views.show, name="there"), LazyUrls("rest/", "none.either", "rest")]
print(reverse("there", args=[1]))
"""


def test_every_address_leads_to_a_view() -> None:
    views = list(lazy_views(get_resolver().url_patterns))
    assert len(views) > 200
    assert all(callable(view.load()) for view in views)


def test_addresses_are_made_without_an_import() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_IMPORT], capture_output=True, text=True, check=False)
    assert done.stdout == "/there/1/\n", done.stderr


def test_view_has_the_marks_of_its_function() -> None:
    assert MARKED.login_required is False
    assert not hasattr(MARKED, "csrf_exempt")
    assert not hasattr(MARKED, "view_class")
    assert resolve("/jobs/")._func_path == "hekla.pages.jobs.list_views.jobs"


def test_pages_name_the_address_of_the_search_without_loading_rest() -> None:
    assert f'data-search="{reverse("api:v1:search")}"' in (CHECKOUT / "templates" / "_floating.html").read_text()


def test_missing_view_is_an_error_when_all_are_loaded() -> None:
    with pytest.raises(AttributeError, match="nowhere"):
        LazyViews("hekla.pages.signin.views").nowhere.load()
    with pytest.raises(ModuleNotFoundError):
        import_alone("hekla.pages.nowhere")


def test_check_of_django_names_missing_views(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check() == []
    broken = LazyView("hekla.pages.signin.views", "nowhere")
    monkeypatch.setattr("hekla.pages.lazy_views.lazy_views", lambda _patterns: [broken])
    (error,) = check()
    assert "nowhere" in error.msg


def test_lazy_urls_are_those_of_their_module() -> None:
    address = reverse("api:v1:jobs")
    assert resolve(address).view_name == "api:v1:jobs"
    fresh = LazyUrls("api/", "hekla.api.urls", "api")
    assert "v1" in fresh.namespace_dict
    assert fresh.app_dict == {"v1": ["v1"]}
    assert "nothing" in fresh.reverse_dict
