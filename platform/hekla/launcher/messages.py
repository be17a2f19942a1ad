"""`python3 manage.py messages`: extracts messages from code and templates into the catalogues, and compiles them.

It reads templates with Django's lexer and Babel, and Python as a syntax tree, so it needs no gettext program. In the
domain, the engine, the backends and the policy lab, messages are the arguments of `translate` and `gettext_noop`.
"""

import argparse
import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

from hekla.launcher import catalogues
from hekla.launcher.terminal import say
from hekla.lib.checkout import CHECKOUT

Forms = tuple[str, ...]
"""A message, or its singular and plural."""

_CODE = CHECKOUT / "platform" / "hekla"
_TEMPLATES = CHECKOUT / "templates"
_CATALOGUES = sorted((_CODE / "locale").glob("*/LC_MESSAGES/django.po"))
_WITHOUT_DJANGO = (_CODE / "domain", _CODE / "engine", _CODE / "backends", _CODE / "simulation" / "lab")
_GETTEXT = {"_", "gettext", "gettext_lazy"}
_NGETTEXT = {"ngettext", "ngettext_lazy"}
_IN_TEMPLATES = {"_": None, "gettext": None, "ngettext": (1, 2)}
# Django's messages that its own catalogue lacks, or that Hekla translates better.
_OF_DJANGO: tuple[Forms, ...] = (
    (
        "Ensure this value has at most %(limit_value)d character (it has %(show_value)d).",
        "Ensure this value has at most %(limit_value)d characters (it has %(show_value)d).",
    ),
    ("Ensure this value is less than or equal to %(limit_value)s.",),
    ("Ensure this value is greater than or equal to %(limit_value)s.",),
    (
        "This password is too short. It must contain at least %d character.",
        "This password is too short. It must contain at least %d characters.",
    ),
    ("Enter a valid JSON.",),
)
# Names of format arguments, also of those that JavaScript fills in; a format without a name counts by its letter.
_PLACEHOLDER = re.compile(r"%\((\w+)\)[\d.]*[a-z]|(%[\d.]*[a-z])(?![a-z])|\{(\w+)(?::[^{}]*)?\}")


def main(arguments: Sequence[str]) -> int:
    """Update the catalogues, or only check them (`--check`). Prints the problems and returns the exit status."""
    parser = argparse.ArgumentParser("manage.py messages", description="Extract and compile the translations.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a catalogue is incomplete")
    only_check = parser.parse_args(arguments).check
    found = extract_all()
    if not only_check:
        for path in _CATALOGUES:
            _update(path, found)
        catalogues.compile_stale()
    problems = [problem for path in _CATALOGUES for problem in check(read_catalogue(path), found)]
    for problem in problems:
        say(problem)
    say(f"{len(found)} messages, {len(problems)} problems.")
    return 1 if problems else 0


def extract_all() -> dict[Forms, list[str]]:
    """All messages with the places of their use (`path:line`), ordered by place."""
    found: dict[Forms, list[str]] = defaultdict(list)
    for path in source_files():
        place = path.relative_to(CHECKOUT)
        for line, forms in sorted({*_in_file(path)}):
            found[forms].append(f"{place}:{line}")
    return {**found, **{forms: ["django"] for forms in _OF_DJANGO}}


def source_files() -> list[Path]:
    """The templates, then the code."""
    templates = [*_TEMPLATES.rglob("*.html"), *_TEMPLATES.rglob("*.txt")]
    return [*sorted(templates), *sorted(_CODE.rglob("*.py"))]


def read_catalogue(path: Path) -> list[Message]:
    """The messages of a .po file, without its header."""
    return [message for message in _read(path) if message.id]


def check(messages: Sequence[Message], found: dict[Forms, list[str]]) -> Iterator[str]:
    """The problems of a catalogue, one line each: missing, obsolete, not translated, other placeholders."""
    present = {forms_of(message.id) for message in messages}
    for forms in found.keys() - present:
        yield f"missing: {forms[0]!r} ({found[forms][0]})"
    for forms in present - found.keys():
        yield f"obsolete: {forms[0]!r}"
    for message in messages:
        yield from _check_translation(message)


def _check_translation(message: Message) -> Iterator[str]:
    forms = forms_of(message.id)
    if message.fuzzy or not all(forms_of(message.string)):
        yield f"not translated: {forms[0]!r}"
        return
    for text in forms_of(message.string):
        if _placeholders(text) != _placeholders(forms[-1]):
            yield f"other placeholders: {forms[-1]!r} -> {text!r}"


def forms_of(text: str | Sequence[str] | None) -> Forms:
    """A message or its plural forms as a tuple."""
    return (text or "",) if text is None or isinstance(text, str) else tuple(text)


def _placeholders(text: str) -> set[str]:
    return {next(filter(None, groups)) for groups in _PLACEHOLDER.findall(text)}


def _in_file(path: Path) -> Iterator[tuple[int, Forms]]:
    """Line and forms of each message of a file."""
    text = path.read_text(encoding="utf-8")
    return _in_code(path, text) if path.suffix == ".py" else _in_template(path, text)


def _in_template(path: Path, text: str) -> Iterator[tuple[int, Forms]]:
    """Line and forms of each message of a template.

    Django turns the template into gettext calls. They are unindented here, so that Python can parse them.
    """
    calls = "\n".join(line.lstrip() for line in templatize(text, origin=str(path)).splitlines())
    for line, forms, _comments, _context in extract("python", BytesIO(calls.encode()), keywords=_IN_TEMPLATES):
        yield line, forms_of(forms)


def _in_code(path: Path, text: str) -> Iterator[tuple[int, Forms]]:
    """Line and forms of each literal argument of gettext, also inside f-strings."""
    singular = _GETTEXT | ({"translate", "gettext_noop"} if any(map(path.is_relative_to, _WITHOUT_DJANGO)) else set())
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(one))]) if name in singular:
                yield node.lineno, (one,)
            case ast.Call(
                func=ast.Name(id=name), args=[ast.Constant(value=str(one)), ast.Constant(value=str(many)), _]
            ) if name in _NGETTEXT:
                yield node.lineno, (one, many)


def _read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file)


def _update(path: Path, found: dict[Forms, list[str]]) -> None:
    """Add missing messages without a translation, and remove obsolete ones. The order of the others stays."""
    catalog = _read(path)
    known = {forms_of(message.id): message for message in catalog if message.id}
    updated = Catalog(locale=path.parents[1].name)
    for forms in [*(forms for forms in known if forms in found), *(forms for forms in found if forms not in known)]:
        updated.add(forms[0] if len(forms) == 1 else forms, known[forms].string if forms in known else "")
    body = BytesIO()
    write_po(body, updated, width=0, omit_header=True)
    head = path.read_bytes().split(b"\n\n", 1)[0]
    path.write_bytes(head + b"\n\n" + body.getvalue().strip() + b"\n")
