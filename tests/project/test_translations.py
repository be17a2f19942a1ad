"""The console speaks Simplified Chinese: every sentence of pages, of the code that serves them, of domain and engine.

Sentences are extracted again here with Django's template lexer and Babel, so that no gettext program is needed.
"""

import ast
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils.translation.template import templatize

from hekla.domain.frameworks import known
from hekla.project.settings import CHECKOUT

SOURCES = CHECKOUT / "platform" / "hekla"
DOMAIN = SOURCES / "domain"
ENGINE = SOURCES / "engine"
KUBERNETES = SOURCES / "backends" / "kubernetes"
CATALOGUE = SOURCES / "locale" / "zh_Hans" / "LC_MESSAGES"
# The names of format arguments, and those that scripts fill in; a format without a name counts by its letter.
PLACEHOLDER = re.compile(r"%\((\w+)\)[\d.]*[a-z]|(%[\d.]*[a-z])(?![a-z])|\{(\w+)(?::[^{}]*)?\}")

SENTENCE = re.compile(r"\w\S* \S.*[.?!]$", re.DOTALL)
SUMMARIES = {framework.summary for framework in known().values()}


def read_source() -> Catalog:
    with (CATALOGUE / "django.po").open("rb") as file:
        return read_po(file)


def messages() -> list[Message]:
    return [message for message in read_source() if message.id]


def forms(text: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """A sentence, or its singular and plural, as a tuple."""
    return (text,) if isinstance(text, str) else tuple(text)


def placeholders(text: str) -> set[str]:
    return {next(filter(None, groups)) for groups in PLACEHOLDER.findall(text)}


def code_of(path: Path) -> bytes:
    """What Babel reads as Python: a template becomes calls of gettext, unindented, since its layout means nothing."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        text = "\n".join(line.lstrip() for line in templatize(text, origin=str(path)).splitlines())
    return text.encode()


def sentences(path: Path) -> Iterator[tuple[str, ...]]:
    keywords = DEFAULT_KEYWORDS | {"gettext_lazy": None, "ngettext_lazy": (1, 2)}
    for _line, text, _comments, _context in extract("python", BytesIO(code_of(path)), keywords=keywords):
        yield forms(text)


def said_to_readers() -> Iterator[tuple[Path, tuple[str, ...]]]:
    """What `said` and `sentence` are given, also the one inside the other."""
    for path in [*DOMAIN.rglob("*.py"), *ENGINE.rglob("*.py"), *KUBERNETES.rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="said" | "sentence"), args=[ast.Constant(value=str(text))]):
                    yield path, (text,)


def unsaid(path: Path) -> Iterator[str]:
    """What looks like a sentence that is told as it stands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts = {id(part) for node in ast.walk(tree) if is_looked_up(node) for part in ast.walk(node)}
    for node in ast.walk(tree):
        text = written(node)
        if id(node) not in parts and SENTENCE.search(text) and text not in SUMMARIES:
            yield text


def is_looked_up(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="said" | "sentence")) | ast.Expr(value=ast.Constant()):
            return True
    return False


def written(node: ast.AST) -> str:
    """A text as it is written in the code, without what is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(written, values))
    return ""


def source_files() -> list[Path]:
    templates = CHECKOUT / "templates"
    return sorted([*templates.rglob("*.html"), *templates.rglob("*.txt"), *SOURCES.rglob("*.py")])


def test_every_sentence_is_in_the_catalogue() -> None:
    known = {forms(message.id) for message in messages()}
    found = {(path, text) for path in source_files() for text in sentences(path)}
    assert len(found) > 400, "the extraction itself has broken"
    told = set(said_to_readers())
    assert len(told) > 100, "the extraction itself has broken"
    missing = {text: str(path.relative_to(CHECKOUT)) for path, text in found | told if text not in known}
    assert not missing


def test_the_domain_tells_nobody_a_sentence_that_is_not_looked_up() -> None:
    """What a job keeps of itself is written in English, and told from facts (`lifecycle.saying`)."""
    paths = set(DOMAIN.rglob("*.py")) - {DOMAIN / "lifecycle" / "saying.py"}
    assert not {str(path.relative_to(DOMAIN)): found for path in paths if (found := list(unsaid(path)))}


def test_every_message_is_translated() -> None:
    lacking = [message.id for message in messages() if message.fuzzy or not all(forms(message.string))]
    assert not lacking


def test_a_translation_fills_in_what_the_sentence_fills_in() -> None:
    wrong = [
        (message.id, text)
        for message in messages()
        for text in forms(message.string)
        if placeholders(text) != placeholders(forms(message.id)[-1])
    ]
    assert not wrong


def test_sentences_use_full_width_punctuation() -> None:
    """A Latin comma, full stop or question mark right after a Chinese character is a slip."""
    slip = re.compile(r"[\u4e00-\u9fff][,.;:?!()]")
    assert not [text for message in messages() for text in forms(message.string) if slip.search(text)]


def test_what_runs_is_what_was_translated() -> None:
    with (CATALOGUE / "django.mo").open("rb") as file:
        compiled = read_mo(file)
    assert {forms(message.id): forms(message.string) for message in compiled if message.id} == {
        forms(message.id): forms(message.string) for message in messages()
    }


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "word"),
    [("zh-hans", "登录"), ("zh-CN,zh;q=0.9,en;q=0.8", "登录"), ("en", "Sign in"), ("xx", "Sign in")],
)
def test_the_sign_in_page_speaks_the_language_that_the_browser_asks_for(language: str, word: str) -> None:
    page = Client(headers={"accept-language": language}).get(reverse("accounts:sign_in"))
    assert word in page.content.decode()


@pytest.mark.django_db
def test_a_chosen_language_stays() -> None:
    client = Client(headers={"accept-language": "en"})
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
    page = client.get(reverse("accounts:sign_in")).content.decode()
    assert 'lang="zh-hans"' in page
    assert "没有密码？" in page
