"""Bundles: the style sheets and the scripts of the console, each as one file.

A browser loads one file sooner than sixty, and one compresses better. The sources stay as they are: a sheet imports
other sheets, and a script is a module. So this knows only the forms of import and export that our sources use, and
refuses all others: `ValueError` names the file.
"""

import re
from pathlib import Path

VENDOR = ("htmx.min.js", "idiomorph-ext.min.js")
"""Classic scripts of others that precede our modules, in this order."""
_SHEET = re.compile(r'^@import "([\w./-]+\.css)";\n', re.MULTILINE)
_STYLE_COMMENT = re.compile(r"/\*.*?\*/\n?", re.DOTALL)
_COMMENT = re.compile(r"^ */\*\*[\s\S]*?\*/\n|^ *//.*\n| +// .*$|^ +", re.MULTILINE)
"""With the indentation. A literal over several lines, which this would change, is refused below."""
_IMPORT = re.compile(r'^import (?:\{([^}]*)\}|\* as (\w+)) from "\./([\w-]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*|\bimport\(|^[^`\n]*`[^`\n]*$", re.MULTILINE)


def style_sheet(path: Path) -> str:
    """The sheet with what it imports in the place of its imports, without comments."""
    text = _SHEET.sub(lambda match: style_sheet(path.parent / match[1]), path.read_text("utf-8"))
    if "@import" in text:
        raise ValueError(f'{path.name}: import sheets as @import "name.css"; on a line')
    return _STYLE_COMMENT.sub("", text)


def script(static: Path) -> str:
    """One classic script: those of others, then `js/app.js` with all modules that it imports."""
    modules: dict[str, str] = {}
    _add_module(static / "js", "app", modules, ())
    vendor = [(static / "vendor" / name).read_text("utf-8").strip() for name in VENDOR]
    return "\n;".join((*vendor, f'(() => {{\n"use strict";\n{"".join(modules.values())}}})();\n'))


def _add_module(folder: Path, name: str, modules: dict[str, str], importers: tuple[str, ...]) -> None:
    """Add the module below those that it imports. Each becomes a function that runs once and returns its exports."""
    if name in modules:
        return
    if name in importers:
        raise ValueError(f"{name}.js: imports itself by way of {', '.join(importers)}")
    text = _COMMENT.sub("", (folder / f"{name}.js").read_text("utf-8"))
    for match in _IMPORT.finditer(text):
        _add_module(folder, match[3], modules, (*importers, name))
    text = _IMPORT.sub(_constant, text)
    exports = _EXPORT.findall(text)
    text = _EXPORT.sub("", text)
    if other := _OTHER.search(text):
        raise ValueError(f"{name}.js: the bundle does not support {other[0]!r}")
    modules[name] = f"const {_variable(name)} = (() => {{\n{text}return {{ {', '.join(exports)} }};\n}})();\n"


def _constant(match: re.Match[str]) -> str:
    names, namespace, module = match.groups()
    target = namespace or f"{{{names.replace(' as ', ': ')}}}"
    return f"const {target} = {_variable(module)};\n"


def _variable(module: str) -> str:
    return f"${module.replace('-', '_')}"
