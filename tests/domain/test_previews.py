"""What people see of files: nothing of them runs, whatever they hold, and all is bounded."""

import base64
import json

import pytest

from hekla.domain.previews import TEXT_BYTES, bytes_to_read, preview
from hekla.domain.previews.preview import Preview, PreviewKind

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
SCRIPT = "<script>alert(1)</script>"


def of(name: str, content: bytes | str) -> Preview:
    data = content.encode() if isinstance(content, str) else content
    return preview(name, data[: bytes_to_read(name)], len(data))


def notebook(*cells: dict[str, object]) -> str:
    return json.dumps({"nbformat": 4, "cells": cells})


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.txt", "x\n", "text"),
        ("a", "", "text"),
        ("page.html", SCRIPT, "text"),
        ("a.svg", f"<svg>{SCRIPT}</svg>", "text"),
        ("a.md", SCRIPT, "text"),
        ("a.png", "no image", "text"),
        ("a.txt", PNG, "image"),
        ("a.svg", PNG, "image"),
        ("a", b"\xff\xd8\xff\xe0", "image"),
        ("a", b"GIF89a", "image"),
        ("a", b"RIFF\0\0\0\0WEBP", "image"),
        ("a", b"RIFF\0\0\0\0WAVE", "binary"),
        ("model.pkl", b"\x80\x04\x95\x01\0", "binary"),
        ("a.txt", b"a\0b", "binary"),
        ("a.zip", b"PK\x03\x04\x14\0", "binary"),
        ("a.parquet", b"PAR1\x15\0", "binary"),
        ("a.csv", "a,b\n1,2\n", "table"),
        ("a.TSV", "a\tb\n", "table"),
        ("a.csv", '"' + "x" * 200_000 + '"', "text"),
        ("a.csv", "", "text"),
        ("a.json", '{"a": 1}', "text"),
        ("a.json", "[" * 5000, "text"),
        ("a.json", "{oops", "text"),
        ("a.json", "[" * 500 + "]" * 500, "text"),
        ("a.json", "1" * 10_000, "text"),
        ("a.ipynb", notebook(), "notebook"),
        ("a.ipynb", "[]", "text"),
        ("a.ipynb", '{"cells": 1}', "text"),
        ("a.ipynb", '{"cells": [1, {"source": 5}]}', "notebook"),
    ],
)
def test_kind(name: str, content: bytes | str, kind: str) -> None:
    assert of(name, content).kind == kind


@pytest.mark.parametrize(
    ("content", "encoding", "line"),
    [
        ("中文".encode(), "utf-8", "中文"),
        ("\ufeffx".encode(), "utf-8", "x"),
        ("中文".encode("gb18030"), "gb18030", "中文"),
        ("é à".encode("cp1252"), "cp1252", "é à"),
        ("x中".encode("utf-16"), "utf-16", "x中"),
        (b"a\x1b[31mred\x07", "utf-8", "a␛[31mred␇"),
        ("\u202egpj.exe".encode(), "utf-8", "⟨U+202E⟩gpj.exe"),
    ],
)
def test_encoding_is_guessed_and_controls_are_visible(content: bytes, encoding: str, line: str) -> None:
    found = of("a.txt", content)
    assert (found.encoding, list(found.lines)) == (encoding, [line])


def test_text_is_bounded() -> None:
    long_line, many, large = of("a", "x" * 5000), of("a", "\n" * 9000), of("a", "中" * TEXT_BYTES)
    assert (long_line.is_cut, len(long_line.lines[0])) == (True, 2000)
    assert (many.is_cut, len(many.lines)) == (True, 5000)
    assert (large.is_cut, large.encoding) == (True, "utf-8")  # although its last character is cut
    assert not of("a", "x\r\ny").is_cut


def test_json_stays_as_it_is_written() -> None:
    assert list(of("a.json", '{"a":[1.50,{"b":{}}],"c":"x\\"y,{","a":[],"e":1e400}').lines) == [
        "{", '  "a": [', "    1.50,", "    {", '      "b": {}', "    }", "  ],", '  "c": "x\\"y,{",', '  "a": [],',
        '  "e": 1e400', "}",
    ]  # fmt: skip


def test_large_json_is_cut() -> None:
    found = of("a.json", "[" * 99 + ",".join("1" * 9000) + "]" * 99)
    assert (found.is_cut, len(found.lines), found.lines[-1]) == (True, 5000, " " * 198 + "1,")


def test_half_of_a_character_is_visible() -> None:
    (cell,) = of("a.ipynb", '{"cells": [{"source": "a\\ud800b", "outputs": [{"text": "\\udfff"}]}]}').cells
    assert (cell.source, cell.outputs[0].text) == ("a⟨U+D800⟩b", "⟨U+DFFF⟩")


def test_table_is_bounded_and_its_cells_are_text() -> None:
    found = of("a.csv", f"a;b\n=1+1;{SCRIPT}\n")
    assert found.rows == [["a", "b"], ["=1+1", SCRIPT]]
    large = of("a.csv", "\n".join([",".join(["x" * 300] * 60)] * 3))
    assert (large.is_cut, len(large.rows[0]), len(large.rows[0][0])) == (True, 50, 200)
    long = of("a.csv", "x\n" * 300_000)
    assert (long.is_cut, len(long.rows)) == (True, 200)


def test_notebook_shows_texts_and_images_only() -> None:
    bundles: list[dict[str, object]] = [
        {"text/html": SCRIPT, "application/javascript": "alert(1)", "text/plain": ["a", "b"]},
        {"image/svg+xml": f"<svg>{SCRIPT}</svg>"},
        {"image/png": base64.b64encode(SCRIPT.encode()).decode(), "text/plain": "no image"},
        {"image/jpeg": base64.b64encode(PNG).decode()},
        {"image/png": '"><script>', "text/plain": None},
    ]
    outputs = [{"output_type": "display_data", "data": bundle} for bundle in bundles]
    outputs += [{"output_type": "stream", "text": ["\x1b[31mred\x1b[0m\n"]}, {"traceback": ["one", "two"]}]
    cell, markdown = of(
        "a.ipynb",
        notebook(
            {"cell_type": "code", "source": ["print(1)\n", "x"], "outputs": outputs},
            {"cell_type": SCRIPT, "source": SCRIPT, "outputs": None},
        ),
    ).cells
    assert (cell.source, markdown.kind, markdown.source) == ("print(1)\nx", "raw", SCRIPT)
    assert [(one.text, one.media_type) for one in cell.outputs] == [
        ("ab", ""), ("no image", ""), ("", "image/png"), ("red\n", ""), ("one\ntwo", ""),
    ]  # fmt: skip
    assert base64.b64decode(cell.outputs[2].image) == PNG


def test_binary_shows_its_first_bytes() -> None:
    found = of("a", bytes(range(256)) * 4)
    assert (found.kind, len(found.hexdump), found.is_cut) == (PreviewKind.BINARY, 16, True)
    assert found.hexdump[2].endswith(" !\"#$%&'()*+,-./")


def test_large_image_is_not_shown() -> None:
    assert preview("a.png", PNG, 2**40).is_cut
