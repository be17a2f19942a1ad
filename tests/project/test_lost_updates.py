"""Services change rows by named fields, on a locked row: a whole row that was read earlier undoes what others did."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import hekla

APPS = Path(hekla.__file__).parent / "apps"
UNITS = {"unit_of_work", "one_at_a_time", "counted"}
"""They begin a transaction."""
LOCKS = {"select_for_update", "one_at_a_time", "counted", "assert_held"}
LOCKS |= {f"changes.{name}" for name in ("lock", "locked", "edit", "write")}
LOCKS |= {f"job_rows.{name}" for name in ("locked", "locked_by_uid", "locked_in_order")}
"""They lock what is changed, or what it belongs to."""


def _called(node: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            module = getattr(call.func.value, "id", "") if isinstance(call.func, ast.Attribute) else ""
            yield f"{module}.{name}" if module in {"changes", "job_rows"} else name, call


def whole_rows(source: str) -> list[int]:
    """The lines with a call of `save` that writes all fields of a row that may exist already."""
    named = {"update_fields", "force_insert"}
    return [
        call.lineno
        for name, call in _called(ast.parse(source))
        if name == "save" and isinstance(call.func, ast.Attribute) and not named & {word.arg for word in call.keywords}
    ]


def unlocked_writers(sources: list[str]) -> set[str]:
    """The functions of a package that save rows in a transaction of their own without locking anything in it."""
    bodies: dict[str, list[ast.AST]] = defaultdict(list)
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                bodies[node.name].append(node)
    direct = {
        name: {called for node in nodes for called, _ in _called(node)} - {"save"}  # of a model, not the verb
        for name, nodes in bodies.items()
    }
    saves = {
        name
        for name, nodes in bodies.items()
        for node in nodes
        for called, call in _called(node)
        if called == "save_all" or (called == "save" and any(word.arg == "update_fields" for word in call.keywords))
    }

    def reached(name: str, visited: set[str]) -> set[str]:
        for called in direct.get(name, set()) - visited:
            visited.add(called)
            reached(called, visited)
        return visited

    return {
        name
        for name in direct
        if direct[name] & UNITS and (saves & {name, *reached(name, set())}) and not LOCKS & reached(name, set())
    }


def _modules(app: Path) -> list[Path]:
    return [path for path in sorted(app.rglob("*.py")) if "migrations" not in path.parts]


@pytest.mark.parametrize("app", sorted(path.name for path in APPS.iterdir() if (path / "__init__.py").exists()))
def test_app_saves_named_fields_of_locked_rows(app: str) -> None:
    modules = _modules(APPS / app)
    assert not {path.name: lines for path in modules if (lines := whole_rows(path.read_text()))}
    assert not unlocked_writers([path.read_text() for path in modules])


def test_whole_row_is_found() -> None:
    assert whole_rows("row.save()\nrow.save(using='x')") == [1, 2]
    assert whole_rows("row.save(update_fields=['a'])\nrow.save(force_insert=True)\nsave()") == []


UNLOCKED = """
def rename(row, name):
    with unit_of_work():
        _set(row, name)

def _set(row, name):
    row.name = name
    row.save(update_fields=["name"])
"""


def test_write_without_a_lock_is_found() -> None:
    assert unlocked_writers([UNLOCKED]) == {"rename"}
    assert not unlocked_writers([UNLOCKED.replace("        _set", "        changes.lock(row)\n        _set")])
