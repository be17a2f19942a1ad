"""Compiles the translation catalogues: `django.po` is in the repository, `django.mo` is not.

Uses only the standard library, because it also runs without development packages. `manage.py` calls it before every
command; container images and systemd units run `python -m hekla.launcher.catalogues`.
"""

import json
import os
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

_LOCALE = Path(__file__).resolve().parents[1] / "locale"
_STRING = re.compile(r'^(?:(msgid|msgid_plural|msgstr)(?:\[\d+\])? )?(".*")$')
_MAGIC = 0x950412DE
_HEADER_FORMAT = "<7I"
_PLURAL_SEPARATOR = "\0"


def compile_stale() -> list[Path]:
    """Compile each catalogue that is missing or older than its source. Returns the written files."""
    return [_compile(source) for source in sorted(_LOCALE.glob("*/LC_MESSAGES/*.po")) if _is_stale(source)]


def read(text: str) -> dict[str, str]:
    """The translations in the text of a .po file, by message. Plural forms are joined by NUL, as in .mo files."""
    translations: dict[str, str] = {}
    for block in re.split(r"\n\s*\n", text):
        if re.search(r"^#, .*fuzzy", block, re.MULTILINE):
            continue
        fields = list(_fields(block))
        ids = [value for name, value in fields if name != "msgstr"]
        strings = [value for name, value in fields if name == "msgstr"]
        if ids and all(strings):
            translations[_PLURAL_SEPARATOR.join(ids)] = _PLURAL_SEPARATOR.join(strings)
    return translations


def encode(translations: Mapping[str, str]) -> bytes:
    """The .mo file of these translations: two sorted tables of lengths and offsets, then the texts."""
    keys = sorted(translations, key=str.encode)
    texts = [text.encode() for text in [*keys, *(translations[key] for key in keys)]]
    header_size = struct.calcsize(_HEADER_FORMAT)
    offset = header_size + 8 * len(texts)
    table = []
    for text in texts:
        table += [len(text), offset]
        offset += len(text) + 1
    header = struct.pack(_HEADER_FORMAT, _MAGIC, 0, len(keys), header_size, header_size + 8 * len(keys), 0, 0)
    return header + struct.pack(f"<{len(table)}I", *table) + b"".join(text + b"\0" for text in texts)


def _fields(block: str) -> Iterator[tuple[str, str]]:
    """Name and text of each field of an entry, with continuation lines joined."""
    name, parts = "", list[str]()
    for line in block.splitlines():
        if found := _STRING.match(line):
            if found[1]:
                if name:
                    yield name, "".join(parts)
                name, parts = found[1], []
            parts.append(json.loads(found[2]))
    if name:
        yield name, "".join(parts)


def _is_stale(source: Path) -> bool:
    compiled = source.with_suffix(".mo")
    return not compiled.exists() or compiled.stat().st_mtime_ns < source.stat().st_mtime_ns


def _compile(source: Path) -> Path:
    """Compile a catalogue. Writes a temporary file and renames it, so that readers always find a complete file."""
    compiled = source.with_suffix(".mo")
    unfinished = compiled.with_suffix(f".{os.getpid()}.new")
    unfinished.write_bytes(encode(read(source.read_text(encoding="utf-8"))))
    unfinished.replace(compiled)
    return compiled


if __name__ == "__main__":
    compile_stale()
