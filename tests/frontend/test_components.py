"""Components rendered alone: text of users is escaped, numbers and times are formatted."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.template import engines
from django.test import RequestFactory
from django_cotton.compiler_regex import CottonCompiler

TEMPLATES = Path(__file__).parents[2] / "templates"
EVIL = "\"><script>alert(1)</script>'"


@pytest.fixture
def render(settings):
    settings.COTTON_DIR = "components"
    settings.STORAGES = {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
    settings.TEMPLATES = [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "DIRS": [TEMPLATES],
            "OPTIONS": {
                "loaders": ["django_cotton.cotton_loader.Loader", "django.template.loaders.filesystem.Loader"],
                "builtins": [
                    "django_cotton.templatetags.cotton",
                    "hekla.pages.frame.templatetags.hekla",
                    "hekla.pages.jobs.templatetags.jobs",
                ],
                "context_processors": ["django.template.context_processors.request"],
            },
        }
    ]

    def render_source(source: str, request=None, **context):
        return engines["django"].from_string(CottonCompiler().process(source)).render(context, request)

    return render_source


@pytest.mark.parametrize(
    "source",
    [
        '<c-badge title="{{ text }}">{{ text }}</c-badge>',
        '<c-button title="{{ text }}" label="{{ text }}">{{ text }}</c-button>',
        '<c-button href="{{ text }}" data-name="{{ text }}">x</c-button>',
        '<c-card :title="text" id="a">{{ text }}</c-card>',
        '<c-code :text="text" />',
        '<c-copy text="{{ text }}" />',
        '<c-empty :title="text">{{ text }}</c-empty>',
        '<c-field :label="text" name="x" :help="text" :error="text">x</c-field>',
        '<c-gang-strip :tasks="tasks" />',
        '<c-log pod="{{ text }}" name="{{ text }}" download="{{ text }}" />',
        '<c-page-head :title="text" />',
        '<c-phase phase="{{ text }}" title="{{ text }}" />',
        '<c-plot id="p" :title="text" :figure="figure" />',
        '<c-post action="/x" :confirm="text" :confirm_name="text">x</c-post>',
        '<c-queue-bar capability="4" used="2" :words="text" />',
        '<c-ribbon :cells="cells" :sentence="text" />',
        '<c-stat :label="text" :value="text" />',
        '<c-toast kind="info">{{ text }}</c-toast>',
    ],
)
def test_user_text_is_escaped(render, source):
    pod = SimpleNamespace(name=EVIL, title=EVIL, phase=EVIL, url=EVIL)
    html = render(
        source,
        text=EVIL,
        tasks=[SimpleNamespace(name=EVIL, summary=EVIL, pods=[pod])],
        cells=[{"kind": EVIL, "start": 0, "width": 9, "words": EVIL}],
        figure=EVIL,
    )
    assert "<script>alert" not in html
    assert EVIL not in html


@pytest.mark.parametrize("phase", ["pending", "running", "lost"])
def test_phase_has_a_colour_an_icon_and_a_label(render, phase):
    html = render('<c-phase phase="{{ phase }}" />', phase=phase)
    assert f"phase-{phase}" in html
    assert f"#phase-{phase}" in html
    assert phase.capitalize() in html


def test_queue_bar_is_drawn_in_thousandths_of_the_capability(render):
    html = render(
        '<c-queue-bar :capability="q.all" :used="q.used" :borrowed="q.borrowed" :deserved="q.deserved" />',
        q={"all": 64, "used": 40, "borrowed": 8, "deserved": 32},
    )
    assert 'class="queue-bar-used" x="0" y="2" width="625"' in html
    assert 'class="queue-bar-borrowed" x1="0" x2="125"' in html
    assert 'x1="500" x2="500"' in html
    assert "queue-bar-lent" not in html


def test_queue_bar_without_capability_is_empty(render):
    assert 'width="0"' in render('<c-queue-bar :capability="0" :used="0" />')


def test_sort_header_reverses_the_order_and_resets_the_page(render):
    request = RequestFactory().get("/?phase=running&sort=name&cursor=abc")
    html = render('<c-th label="Name" field="name" sort="name" />', request=request)
    assert 'aria-sort="ascending"' in html
    assert 'href="?phase=running&amp;sort=-name"' in html


def test_sort_header_without_a_request_has_no_link(render):
    assert "<a" not in render('<c-th label="Name" field="name" sort="name" />')


def test_times_have_their_exact_value(render):
    at = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)
    assert 'datetime="2026-11-21T08:30:00+00:00"' in render('<c-time :at="at" />', at=at)
    assert "datetime" not in render('<c-time :at="at" />', at=None)
