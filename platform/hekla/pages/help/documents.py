"""The help pages: Markdown files, in the reader's language where there is a translation."""

from functools import cache
from pathlib import Path

from django.conf import settings

_ORDER = (
    "first-five-minutes", "jobs", "submitting", "flows", "batches", "schedules", "openpai", "queues", "alerts",
    "environments", "administration", "access", "examples", "demonstrations",
)  # fmt: skip


def titles(language: str) -> list[tuple[str, str]]:
    """The name and title of each page, in reading order."""
    names = [name for name in _ORDER if _file(name, language).is_file()]
    return [(name, text(name, language).partition("\n")[0].lstrip("# ").strip()) for name in names]


def text(name: str, language: str) -> str:
    """The Markdown of a page. Its first line is the title."""
    file = _file(name, language)
    return _read(file, file.stat().st_mtime)


@cache
def _read(file: Path, _changed_at: float) -> str:
    return file.read_text(encoding="utf-8")


def _file(name: str, language: str) -> Path:
    folder = Path(settings.HELP_FOLDER)
    translated = folder / language / f"{name}.md"
    return translated if translated.is_file() else folder / f"{name}.md"
