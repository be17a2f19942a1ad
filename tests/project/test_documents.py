"""Documents are correct: links and commands exist, translations are complete."""

import re
from itertools import chain

import click
import pytest

from hekla.cli.main import hekla
from hekla.domain import formats
from hekla.lib.checkout import CHECKOUT

HELP = CHECKOUT / "platform" / "help"
PAGES = sorted(HELP.glob("*.md"))
TRANSLATIONS = [CHECKOUT / "platform" / "help" / "zh-hans" / page.name for page in PAGES]
DOCUMENTS = [
    CHECKOUT / "README.md",
    *sorted((CHECKOUT / "platform" / "decisions").glob("*.md")),
    *sorted((CHECKOUT / "deploy").rglob("README.md")),
    *PAGES,
    *TRANSLATIONS,
]
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
COMMAND = re.compile(r"^ +(?:\.venv/bin/)?hekla (?P<words>\S.*?)(?: +#.*)?$", re.MULTILINE)


def name_of(path):
    return str(path.relative_to(CHECKOUT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_exist(document):
    targets = LINK.findall(document.read_text(encoding="utf-8"))
    assert [target for target in targets if not (document.parent / target).exists()] == []


@pytest.mark.parametrize("page", [*PAGES, *TRANSLATIONS], ids=name_of)
def test_page_begins_with_its_title(page):
    assert re.match(r"# \S", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("page", "translation"), list(zip(PAGES, TRANSLATIONS, strict=True)), ids=name_of)
def test_translation_has_the_same_structure(page, translation):
    def parts(path):
        text = path.read_text(encoding="utf-8")
        return [len(re.findall(mark, text, re.MULTILINE)) for mark in (r"^## ", r"^\| ", r"^    \S", r"^(?:- |\d\. )")]

    assert parts(page) == parts(translation)


@pytest.mark.parametrize("page", [*PAGES, *TRANSLATIONS], ids=name_of)
def test_commands_in_the_help_exist(page):
    for match in COMMAND.finditer(page.read_text(encoding="utf-8")):
        word, *rest = match["words"].split()
        command = hekla.get_command(click.Context(hekla), word)
        if isinstance(command, click.Group) and rest and not rest[0].startswith("--"):
            command = command.get_command(click.Context(command), rest.pop(0))
        assert command is not None, match[0]
        known = set(chain.from_iterable(option.opts for option in command.params))
        assert {part for part in rest if part.startswith("--")} <= known, match[0]


@pytest.mark.parametrize("page", [HELP / "submitting.md", HELP / "zh-hans" / "submitting.md"], ids=name_of)
def test_manifest_in_the_help_is_valid(page):
    blocks = re.findall(r"(?:^    .*\n)+", page.read_text(encoding="utf-8"), re.MULTILINE)
    manifest = next(block for block in blocks if "apiVersion" in block)
    assert formats.load("".join(line[4:] for line in manifest.splitlines(keepends=True))).warnings == ()
