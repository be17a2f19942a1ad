"""The bundles of the style sheets and scripts, and how they are answered."""

import gzip
from pathlib import Path

import pytest
from django.conf import LazySettings, settings
from django.test import Client

from hekla.lib import bundles
from hekla.pages.frame import static_files

STATIC = Path(__file__).parents[2] / "static"
KIB = 1024


def _static(folder: Path, **modules: str) -> Path:
    for name in ("js", "vendor"):
        (folder / name).mkdir()
    for name in bundles.VENDOR:
        (folder / "vendor" / name).write_text(f"var {name.split('.', maxsplit=1)[0].replace('-', '_')} = 1")
    for name, text in modules.items():
        (folder / "js" / f"{name}.js").write_text(text)
    return folder


def test_sheets_and_modules_come_once_and_below_what_they_import(tmp_path: Path) -> None:
    (tmp_path / "all.css").write_text('/* All. */\n@import "a.css";\n@import "b.css";\n')
    (tmp_path / "a.css").write_text("a { color: red } /* said */\n")
    (tmp_path / "b.css").write_text("b { color: blue }\n")
    assert bundles.style_sheet(tmp_path / "all.css") == "a { color: red } b { color: blue }\n"
    words = "// Words.\nexport const LANGUAGE = 'en';\n/** Says\n * it. */\nexport function say() {}\n"
    app = 'import { say } from "./words.js";\nimport * as all from "./words.js";\nsay(all.LANGUAGE);\n'
    script = bundles.script(_static(tmp_path, app=app, words=words))
    assert script.startswith("var htmx = 1\n;var idiomorph_ext = 1\n;(() => {")
    assert script.count("function say()") == 1
    assert "Words." not in script
    assert "it. */" not in script
    assert (
        script.index("const $words =") < script.index("const { say } = $words;") < script.index("const all = $words;")
    )
    assert "return { LANGUAGE, say };" in script


@pytest.mark.parametrize(
    ("app", "other"),
    [
        ("export default 1;\n", ""),
        ('import thing from "./other.js";\n', ""),
        ('const later = import("./other.js");\n', ""),
        ("const text = `a\n  b`;\n", ""),
        (
            'import { b } from "./other.js";\nexport const a = 1;\n',
            'import { a } from "./app.js";\nexport const b = 1;\n',
        ),
    ],
)
def test_unsupported_forms_are_refused_with_the_name_of_the_file(tmp_path: Path, app: str, other: str) -> None:
    with pytest.raises(ValueError, match=r"app\.js"):
        bundles.script(_static(tmp_path, app=app, other=other))


def test_bundles_are_compressed_and_small(db: None) -> None:
    """With the page itself and the picture of the icons, a first visit is below 120 KiB, and 500 KiB with plots."""
    sizes = {}
    for name in ("bundles/console.css", "bundles/console.js", "vendor/plotly-basic.min.js", "img/icons.svg"):
        answer = Client(headers={"accept-encoding": "gzip"}).get(f"{settings.STATIC_URL}{name}")
        plain = Client(headers={"accept-encoding": "gzip;q=0, br"}).get(f"{settings.STATIC_URL}{name}")
        assert (answer.headers["Content-Encoding"], answer.headers["Vary"]) == ("gzip", "Accept-Encoding")
        assert "Content-Encoding" not in plain.headers
        assert gzip.decompress(answer.content) == plain.content
        sizes[name] = len(answer.content) / KIB
    font = (STATIC / "fonts" / "public-sans-latin-wght-normal.woff2").stat().st_size / KIB
    plots = sizes.pop("vendor/plotly-basic.min.js")
    assert font < 40
    assert sum(sizes.values()) + font < 100
    assert sum(sizes.values()) + font + plots < 480
    for method in ("post", "delete"):
        assert getattr(Client(), method)(f"{settings.STATIC_URL}bundles/console.js").status_code != 200


def test_changed_sources_are_served_at_once_in_development(
    db: None, tmp_path: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static_files, "_STATIC", tmp_path)
    client = Client()
    assert client.get("/static/new.css").status_code == 404  # starts the middleware as without DEBUG
    settings.DEBUG = True
    for text in ("a {}", "b {}"):
        (tmp_path / "new.css").write_text(text)
        answer = client.get("/static/new.css")
        assert (answer.content.decode(), answer.headers["Cache-Control"]) == (text, "no-cache")
