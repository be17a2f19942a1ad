"""The recipes of platform/README.md, as files."""

import re
from pathlib import Path

from hekla.lib.checkout import CHECKOUT

README = CHECKOUT / "platform" / "README.md"
BLOCK = re.compile(
    r"^```\w+\n(?:# |<!-- )recipe (?P<recipe>[\w ]+): (?P<path>\S+?)(?: -->)?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def files_of(recipe: str) -> dict[str, str]:
    """The files of the recipe, by path."""
    found = {block["path"]: block["text"] for block in BLOCK.finditer(README.read_text()) if block["recipe"] == recipe}
    assert found, f"the page has no recipe for {recipe}"
    return found


def follow(recipe: str, folder: Path) -> None:
    """Writes these files below the folder."""
    for path, text in files_of(recipe).items():
        target = folder / path
        assert not target.exists(), f"{path} is there already"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
