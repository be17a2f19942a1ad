"""Templates give the same text with fewer steps as with those of Django and Cotton."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.template import Context, Engine, VariableDoesNotExist, engines
from django.template.base import FilterExpression, NodeList, Template, Variable, VariableNode
from django.template.defaulttags import URLNode
from django.template.loader_tags import IncludeNode
from django.test import RequestFactory
from django.utils import translation
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy
from django_cotton.compiler_regex import CottonCompiler
from django_cotton.templatetags._component import CottonComponentNode
from django_cotton.templatetags._slot import CottonSlotNode
from django_cotton.templatetags._vars import CottonVarsNode

from hekla.pages.frame import quick_components, quick_tags, quick_variables

_EVIL = "<b>\"'&"
_COMPONENTS = {
    "components/card.html": (
        '<c-vars title="" id="" actions="" flush="" /><section {% if id %}id="{{ id }}"{% endif %} {{ attrs }}>'
        "{% if title or actions %}<h2>{{ title }}</h2>{{ actions }}{% endif %}{{ slot }}{{ outer }}{{ request.path }}"
        "</section>"
    ),
    "components/button.html": '<c-vars kind="plain" href /><button class="{{ kind }}" {{ attrs }}>{{ slot }}</button>',
    "components/mark.html": (
        '<c-vars title="" more="" /><b {% if title %}title="{{ title }}"{% endif %}>{{ slot }}{{ more }}</b>'
    ),
    "components/several.html": '<c-vars :items="[1, 2]" kind="a" />{% for i in items %}{{ i }}{% endfor %}{{ kind }}',
    "part.html": "{{ a }}-{{ one.name }}-{{ forloop.counter }}-{{ outer }}",
}


class _Quiet(Exception):
    silent_variable_failure = True


class _Thing:
    """Everything that a variable can meet on its way."""

    def __init__(self, number: int) -> None:
        self.number, self.name, self.share, self.nothing = number, f"n<{number}>", 1.5 * number, None
        self.words = {"items": 3} if number > 1 else {"a": 1}
        self.row = [number, _EVIL]

    def __str__(self) -> str:
        return self.name

    def call(self) -> str:
        return _EVIL

    def needs(self, more: str) -> str:
        return more

    def mapping(self) -> dict[str, Any]:
        return self.words

    def deletes(self) -> str:
        return "deleted"

    deletes.alters_data = True  # type: ignore[attr-defined]

    @property
    def quiet(self) -> str:
        raise _Quiet

    def quiet_call(self) -> str:
        raise _Quiet


def _facts() -> dict[str, Any]:
    uncalled = _Thing(3)
    uncalled.do_not_call_in_templates = True  # type: ignore[attr-defined]
    return {
        "things": [_Thing(1), _Thing(2)], "uncalled": uncalled, "outer": f"o{_EVIL}", "safe": SafeString("<i>"),
        "n": 12345,
        "at": datetime(2026, 1, 2, tzinfo=UTC), "part": Decimal("1.50"), "yes": True, "lazy": gettext_lazy("Name"),
        "function": lambda: _EVIL, "space": SimpleNamespace(items="own", a={"b": {"c": _EVIL}}),
    }  # fmt: skip


_VARIABLES = (
    "outer safe n at part yes lazy function space.items space.a.b.c space.a.b.d space.x missing missing.x "
    "things.0.name things.9 things.x things.0.row.1 things.0.row.7 things.0.words.items things.1.words.items "
    "things.0.words.values things.0.call things.0.needs things.0.mapping.a things.1.mapping.items things.0.deletes "
    "things.0.quiet things.0.quiet_call things.0.quiet.x things.0.nothing things.0.nothing.x things.0.share "
    "uncalled uncalled.name 12 'text' outer|upper missing|default:'-' n|add:1 template autoescape dicts push None True"
)


@pytest.fixture
def engine(settings: Any) -> Engine:
    """An engine of its own with a few components."""
    settings.COTTON_DIR = "components"
    loaders = [("django.template.loaders.locmem.Loader", {})]
    builtins = ["django_cotton.templatetags.cotton", "hekla.pages.frame.templatetags.hekla"]
    options = {"context_processors": ["django.template.context_processors.request"], "builtins": builtins}
    settings.TEMPLATES = [
        {"BACKEND": "django.template.backends.django.DjangoTemplates", "OPTIONS": {**options, "loaders": loaders}}
    ]
    made: Engine = engines["django"].engine  # type: ignore[attr-defined]
    compiled = {name: _compiled(source) for name, source in _COMPONENTS.items()}
    made.template_loaders[0].templates_dict = compiled  # type: ignore[attr-defined]
    return made


def _compiled(source: str) -> str:
    return str(CottonCompiler().process(source))


@contextmanager
def _all_steps() -> Iterator[None]:
    """Within it, templates take all the steps of Django and Cotton."""
    originals: list[tuple[Any, str, Any]] = [
        (Variable, "resolve", quick_variables._django_resolves),
        (FilterExpression, "resolve", quick_variables._django_filters),
        (NodeList, "render", quick_variables._django_joins),
        (VariableNode, "render", quick_variables._django_prints),
        (URLNode, "render", quick_tags._django_reverses),
        (IncludeNode, "render", quick_tags._django_includes),
        (CottonComponentNode, "render", quick_components._cotton_renders),
        (CottonSlotNode, "render", quick_components._cotton_fills),
        (CottonVarsNode, "render", quick_components._cotton_declares),
    ]
    with pytest.MonkeyPatch.context() as patch:
        for place, name, original in originals:
            patch.setattr(place, name, original)
        yield


def _outcome(render: Callable[[], object]) -> object:
    """The text, or the kind of exception."""
    try:
        return render()
    except Exception as error:
        return type(error)


def _both(source: str, engine: Engine) -> tuple[object, object]:
    """The outcome with few steps, and with all."""
    template, request = Template(_compiled(source), engine=engine), RequestFactory().get("/here?x=1")
    page = engines["django"].from_string("")  # type: ignore[attr-defined]
    page.template = template
    quick = [_outcome(lambda: page.render(_facts(), request)) for _again in range(2)]
    assert quick[0] == quick[1]
    with _all_steps():
        return quick[0], _outcome(lambda: page.render(_facts(), request))


@pytest.mark.parametrize("name", _VARIABLES.split())
@pytest.mark.parametrize(
    "source",
    [
        "{{ %s }}",
        "{%% if %s %%}yes{%% else %%}no{%% endif %%}",
        "{%% for one in %s %%}{{ one }}{%% empty %%}-{%% endfor %%}",
        "{%% autoescape off %%}{{ %s }}{%% endautoescape %%}",
        "{%% with x=%s %%}{{ x }}{%% endwith %%}",
    ],
)
def test_a_variable_is_as_django_resolves_it(engine: Engine, name: str, source: str) -> None:
    quick, usual = _both(source % name, engine)
    assert quick == usual


@pytest.mark.parametrize(
    "source",
    [
        '<c-card title="{{ one.name }} & co" data-a="{{ one.nothing }}" disabled :n="one.number">x</c-card>',
        '<c-card id="{% if one.number > 1 %}x{{ one.number }}{% endif %}" :title="missing">x</c-card>',
        '<c-card><c-slot name="actions"><c-button>{{ outer }}{{ one.call }}</c-button></c-slot>{{ outer }}</c-card>',
        '<c-card :flush="one.words"><c-card><c-button kind="{{ one.name }}" :attrs="one.words" /></c-card></c-card>',
        "<c-button data-q=\"{% translate 'Name' %} {{ outer }}\">{% include 'part.html' with a=one.name %}</c-button>",
        '<c-several /><c-several :items="one.row" kind="{{ one.name }}" />',
        '<c-component is="button">x</c-component><c-card only>{{ outer }}</c-card>',
        "{% include 'part.html' with a=one.name only %}{% include missing %}",
        "{% include one.nothing %}",
        "{% url 'home' %}{% url 'jobs:pod' one.name 3 %}{% url 'queues:detail' name=one.name %}",
        "{% url 'queues:detail' one.name as place %}{{ place }}{% url 'unknown' as other %}{{ other }}",
        "{% url 'unknown' %}",
        "{% url 'queues:detail' one.row %}",
    ],
)
def test_tags_are_as_cotton_and_django_render_them(engine: Engine, source: str) -> None:
    quick, usual = _both(f"{{% load i18n %}}{{% for one in things %}}{source}{{% endfor %}}", engine)
    assert quick == usual


@pytest.mark.parametrize(
    ("source", "is_constant"),
    [
        ("<c-button kind=\"{% translate 'Name' %}\" disabled>{% address 'home' %}{% icon 'x' %}</c-button>", True),
        ('<c-mark title="{% translate \'Name\' %}"><c-slot name="more"><c-button>x</c-button></c-slot></c-mark>', True),
        ("<c-mark>{% if outer %}x{% endif %}</c-mark>", False),
        ("<c-button>{{ request.path }}</c-button>", False),
        ("<c-button>{% moment at %}</c-button>", False),
        ('<c-button :kind="outer">x</c-button>', False),
        ('<c-button data-a="{{ n }}">x</c-button>', False),
        ("<c-card title=\"{% translate 'Name' %}\">its template reads the request</c-card>", False),
        ("<c-mark><c-card>x</c-card></c-mark>", False),
        ("<c-several>x</c-several>", False),
    ],
)
def test_only_what_depends_on_the_language_alone_is_kept(engine: Engine, source: str, is_constant: bool) -> None:
    template = Template(_compiled(f"{{% load i18n %}}{source}"), engine=engine)
    page = engines["django"].from_string("")  # type: ignore[attr-defined]
    page.template, request = template, RequestFactory().get("/")
    texts = {}
    for language in ("en", "zh-hans", "en"):
        with translation.override(language):
            texts[language] = page.render(_facts(), request)
            with _all_steps():
                assert page.render(_facts(), request) == texts[language]
    [node] = [one for one in template.nodelist if isinstance(one, CottonComponentNode)]
    assert node.__dict__["texts"] == (texts if is_constant else None)


def test_a_thread_that_finds_the_plan_of_a_component_finds_its_texts(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    template, page = Template(_compiled("<c-button>x</c-button>"), engine=engine), engines["django"].from_string("")  # type: ignore[attr-defined]
    page.template = template
    [node] = [one for one in template.nodelist if isinstance(one, CottonComponentNode)]
    known: list[bool] = []

    def is_constant(_nodes: object, _plan_of: object) -> bool:
        known.append("plan" in node.__dict__)
        return True

    monkeypatch.setattr(quick_components, "is_constant", is_constant)
    page.render({}, RequestFactory().get("/"))
    assert known == [False]


def test_a_missing_variable_raises_the_same_exception() -> None:
    for name in ("missing", "missing.x", "n.x", "thing.x"):
        with pytest.raises(VariableDoesNotExist):
            Variable(name).resolve(Context({"n": 1, "thing": _Thing(1)}))
    assert Variable("n").resolve({"n": 1}) == 1


def test_an_exception_of_a_function_is_raised_once() -> None:
    calls: list[int] = []

    def fails() -> None:
        calls.append(1)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        Template("{{ fails }}", engine=Engine()).render(Context({"fails": fails}))
    assert calls == [1]


def test_constant_texts_follow_the_language(engine: Engine) -> None:
    plain = "{% blocktranslate %}Name{% endblocktranslate %}"
    source = f"{{% load i18n %}}{{% translate 'Name' %}}{{% translate 'Name' as x %}}{{{{ x }}}}{plain}"
    template = Template(source, engine=engine)
    for language in ("en", "zh-hans", "en"):
        with translation.override(language):
            assert template.render(Context()) == gettext("Name") * 3
