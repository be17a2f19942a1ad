"""Names are the terms of the field, and files and functions are short.

An identifier is refused if one of its words is private (`was_told`), a module or a class if its whole name is.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "platform" / "hekla"
TESTS = Path(__file__).parents[1]
TEMPLATES = Path(__file__).parents[2] / "templates"

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 50
MAX_PROJECT_LINES = 800
MAX_TEMPLATE_WIDTH = 160


def terms(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Participles, pronouns and riddles: no identifier contains one of these words.
PRIVATE_WORDS = terms(
    """
    adopted aftermath asked beginnings begun circumstances entrusted foresight futility given homes kept meanwhile
    said saying sealed sealing seen shown sights somebody stirred taken told unasked untold uprooting voices walls
    wish wished wishes
    """
)
# Plain English in a sentence; the name of a test is a sentence.
PLAIN_IN_SENTENCES = terms("given kept meanwhile seen shown taken")
# Names that mean nothing alone: no attribute, argument or variable has one of them.
PRIVATE_NAMES = frozenset({"way", "ways", "moved", "of_ours", "doubt", "in_vain", "likeness"})
PRIVATE_MODULES = terms(
    """
    acting adopting asking books carried carry_out circles copies course doors easing entering exposure filling
    fragments holder ladders lines losses opened others outbox places reaching silence spans sparing standing story
    take_down turns visits wording
    """
)
PRIVATE_CLASSES = terms(
    """
    Acting Answer Asked Asking Begun Beginning Beside Census Coming Course Ending Exposed Exposure Fate Filling Finder
    First Flight Follower Found Gathered Half Heard Held Hold Homes Keeper Kept Line Look Made Member Memory Moved One
    OneCard Others Picture Place Places Point Present Said Seen Shown Sights Span Standing Standings Starting Story
    Told Tries Use Visit Way What Wish
    """
)

# Names that several packages have for a reason.
SHARED_NAMES: dict[str, str] = {
    "Command": "Django finds the class of a management command by this name.",
}


@dataclass(frozen=True)
class Module:
    """What the tests read of a module. Its syntax tree would stay in memory, a hundred times as large."""

    identifiers: list[tuple[str, int]]
    """The names of classes, functions, arguments, variables and attributes, with their lines."""
    classes: list[str]
    """At the top level."""
    functions: list[tuple[str, int]]
    """With their length in lines."""

    @classmethod
    def read(cls, path: Path) -> "Module":
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found = cls([], [node.name for node in tree.body if isinstance(node, ast.ClassDef)], [])
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    found.functions.append((name, (node.end_lineno or 0) - node.lineno))
                    found.identifiers.append((name, node.lineno))
                case ast.ClassDef(name=name) | ast.arg(arg=name):
                    found.identifiers.append((name, node.lineno))
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    found.identifiers.append((name, node.lineno))
        return found


@cache
def modules() -> dict[str, Module]:
    """Every module of the package by its dotted path, without migrations."""
    files = (path for path in sorted(PACKAGE.rglob("*.py")) if "migrations" not in path.parts)
    return {dotted(path): Module.read(path) for path in files}


def dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def words(name: str) -> set[str]:
    """The words of an identifier, for example of `TaskWasTold` or `_was_told`."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


@cache
def is_private(name: str) -> bool:
    return name in PRIVATE_CLASSES or name.strip("_") in PRIVATE_NAMES or not PRIVATE_WORDS.isdisjoint(words(name))


def private_names(name: str, module: Module) -> Iterator[str]:
    last = name.rpartition(".")[2]
    if last in PRIVATE_MODULES or not PRIVATE_WORDS.isdisjoint(words(last)):
        yield name
    yield from (f"{name}:{line} {found}" for found, line in module.identifiers if is_private(found))


def test_identifiers_use_the_terms_of_the_field() -> None:
    assert [found for name, module in modules().items() for found in private_names(name, module)] == []


def test_identifiers_of_tests_use_the_terms_of_the_field() -> None:
    paths = [path for path in sorted(TESTS.rglob("*.py")) if path != Path(__file__)]
    found = [found for path in paths for found in private_names(f"tests.{path.stem}", Module.read(path))]
    assert [name for name in found if not is_plain_sentence(name.rpartition(" ")[2])] == []


def is_plain_sentence(name: str) -> bool:
    return name.startswith("test_") and PRIVATE_WORDS.isdisjoint(words(name) - PLAIN_IN_SENTENCES)


def test_public_class_names_are_unique() -> None:
    packages = defaultdict(set)
    for name, module in modules().items():
        for found in module.classes:
            if not found.startswith("_"):
                packages[found].add(".".join(name.split(".")[:2]))
    repeated = {name: sorted(found) for name, found in packages.items() if len(found) > 1}
    assert {name: found for name, found in repeated.items() if name not in SHARED_NAMES} == {}


def test_template_lines_are_short() -> None:
    too_long = [
        f"{path.relative_to(TEMPLATES)}:{number}"
        for path in sorted(TEMPLATES.rglob("*.*"))
        if path.suffix in {".html", ".txt"}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > MAX_TEMPLATE_WIDTH
    ]
    assert too_long == []


def test_files_are_short() -> None:
    sizes = {
        str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
        if "migrations" not in path.parts
    }
    assert {name for name, size in sizes.items() if size > MAX_FILE_LINES} == set()


def test_project_package_is_small() -> None:
    sizes = [len(path.read_text(encoding="utf-8").splitlines()) for path in (PACKAGE / "project").rglob("*.py")]
    assert sum(sizes) <= MAX_PROJECT_LINES


def test_functions_are_short() -> None:
    found = {
        f"{name}.{function}"
        for name, module in modules().items()
        for function, lines in module.functions
        if lines >= MAX_FUNCTION_LINES
    }
    assert found == set()


@pytest.mark.parametrize("name", ["was_told", "_asked", "TaskWasTold", "way", "Line", "_way"])
def test_private_names_are_recognised(name: str) -> None:
    assert is_private(name)


@pytest.mark.parametrize("name", ["gateway", "lines", "message", "unfolded", "JobSpec", "keep"])
def test_plain_names_are_not_private(name: str) -> None:
    assert not is_private(name)
