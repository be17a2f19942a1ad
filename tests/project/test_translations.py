"""The Simplified Chinese translation has every message of the pages and the code."""

import ast
import gettext
import os
import re
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from hekla.domain.frameworks import load_frameworks
from hekla.launcher import catalogues, messages
from hekla.project.settings import CHECKOUT

DOMAIN = CHECKOUT / "platform" / "hekla" / "domain"
CATALOGUE = CHECKOUT / "platform" / "hekla" / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"

SENTENCE = re.compile(r"\w\S* \S.*[.?!]$", re.DOTALL)
EXTRACT_ONCE = cache(messages.extract_all)  # it takes seconds
SUMMARIES = {framework.summary for framework in load_frameworks().values()}


def untranslated(path: Path) -> Iterator[str]:
    """The sentences in the code that are not looked up in a catalogue."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts = {id(part) for node in ast.walk(tree) if is_looked_up(node) for part in ast.walk(node)}
    for node in ast.walk(tree):
        text = text_of(node)
        if id(node) not in parts and SENTENCE.search(text) and text not in SUMMARIES:
            yield text


def is_looked_up(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="_" | "translate" | "gettext_noop")) | ast.Expr(value=ast.Constant()):
            return True
        case ast.keyword(arg="help_text" | "description"):  # parts of the OpenAPI document
            return True
    return False


def text_of(node: ast.AST) -> str:
    """The text of a string in the code, without its placeholders."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(text_of, values))
    return ""


def test_catalogues_are_complete(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is missing, obsolete or not translated, and each translation has the placeholders of its message."""
    monkeypatch.setattr(messages, "extract_all", EXTRACT_ONCE)
    assert messages.main(["--check"]) == 0, capsys.readouterr().out


def test_messages_are_found_in_templates_code_and_domain() -> None:
    found = EXTRACT_ONCE()
    assert len(found) > 2000
    folders = {"/".join(location.split("/")[:3]) for locations in found.values() for location in locations}
    assert {"platform/hekla/domain", "platform/hekla/engine", "platform/hekla/backends"} <= folders
    assert any(folder.startswith("templates/") for folder in folders)


def test_check_reports_every_problem(tmp_path: Path) -> None:
    source = tmp_path / "django.po"
    source.write_text('msgid "Keep %(n)s"\nmsgstr "保留"\n\nmsgid "Old"\nmsgstr "旧"\n\nmsgid "Stop"\nmsgstr ""\n')
    found = {("Keep %(n)s",): ["a.py:1"], ("Stop",): ["a.py:2"], ("New",): ["a.py:3"]}
    problems = set(messages.check(messages.read_catalogue(source), found))
    assert problems == {
        "missing: 'New' (a.py:3)",
        "obsolete: 'Old'",
        "not translated: 'Stop'",
        "other placeholders: 'Keep %(n)s' -> '保留'",
    }


def test_errors_of_the_api_are_looked_up_in_the_catalogue() -> None:
    """Each sentence that a program gets in an error; OpenPAI's words for success are part of its protocol."""
    found = [
        f"{path}: {text}"
        for path in sorted((CHECKOUT / "platform" / "hekla" / "api").rglob("*.py"))
        for text in untranslated(path)
        if not text.endswith("successfully.")
    ]
    assert found == []


def test_domain_has_no_untranslated_sentences() -> None:
    """The exception is `lifecycle.messages`: a job stores its messages in English, and pages translate its facts."""
    paths = set(DOMAIN.rglob("*.py")) - {DOMAIN / "lifecycle" / "messages.py"}
    assert not {str(path.relative_to(DOMAIN)): found for path in paths if (found := list(untranslated(path)))}


def test_sentences_use_full_width_punctuation() -> None:
    """A Latin comma, full stop or question mark right after a Chinese character is a slip."""
    slip = re.compile(r"[\u4e00-\u9fff][,.;:?!()]")
    texts = (text for message in messages.read_catalogue(CATALOGUE) for text in messages.forms_of(message.string))
    assert not [text for text in texts if slip.search(text)]


def test_compiled_catalogue_equals_its_source() -> None:
    """Python's gettext finds every message and plural form in the compiled catalogue."""
    compiled = gettext.GNUTranslations(BytesIO(CATALOGUE.with_suffix(".mo").read_bytes()))
    for message in messages.read_catalogue(CATALOGUE):
        one, *many = messages.forms_of(message.id)
        text = compiled.ngettext(one, many[0], 2) if many else compiled.gettext(one)
        assert text == messages.forms_of(message.string)[0]


def test_fuzzy_and_untranslated_messages_are_not_compiled() -> None:
    text = 'msgid "A"\nmsgstr ""\n\n#, fuzzy\nmsgid "B"\nmsgstr "乙"\n\nmsgid ""\n"C \\"quoted\\""\nmsgstr "丙\\n"\n'
    assert catalogues.read(text) == {'C "quoted"': "丙\n"}


def test_catalogue_is_compiled_if_its_source_is_newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "xx" / "LC_MESSAGES" / "django.po"
    source.parent.mkdir(parents=True)
    source.write_text('msgid "A"\nmsgstr "B"\n')
    monkeypatch.setattr(catalogues, "_LOCALE", tmp_path)
    compiled = source.with_suffix(".mo")
    assert catalogues.compile_stale() == [compiled]
    assert catalogues.compile_stale() == []
    os.utime(source, ns=(0, compiled.stat().st_mtime_ns + 1))
    assert catalogues.compile_stale() == [compiled]
    assert sorted(path.name for path in source.parent.iterdir()) == ["django.mo", "django.po"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "word"),
    [("zh-hans", "登录"), ("zh-CN,zh;q=0.9,en;q=0.8", "登录"), ("en", "Sign in"), ("xx", "Sign in")],
)
def test_sign_in_page_has_the_language_of_the_browser(language: str, word: str) -> None:
    page = Client(headers={"accept-language": language}).get(reverse("accounts:sign_in"))
    assert word in page.content.decode()


@pytest.mark.django_db
def test_language_cookie_selects_the_language() -> None:
    client = Client(headers={"accept-language": "en"})
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
    page = client.get(reverse("accounts:sign_in")).content.decode()
    assert 'lang="zh-hans"' in page
    assert "没有密码？" in page
