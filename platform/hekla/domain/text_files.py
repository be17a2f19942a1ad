"""Text files that people edit, between their bytes and the text of an editor, which knows one kind of line end.

So an edit changes only what the person has changed, except in files that mix line ends.
"""

from dataclasses import dataclass

MOST_BYTES = 2**20
"""Of a file that can be edited."""
_LANGUAGES = {
    "yaml": ("yaml", "yml", "json", "jsonc", "ipynb"),  # JSON is YAML
    "python": ("py", "pyi", "pyw"),
    "shell": ("sh", "bash", "zsh", "env", "slurm", "sbatch"),
}
_BY_SUFFIX = {suffix: language for language, suffixes in _LANGUAGES.items() for suffix in suffixes}


@dataclass(frozen=True, slots=True)
class TextFile:
    """The text of a file, with `\\n` between its lines. `has_returns`: the file has `\\r\\n` there.

    `is_mixed`: it has both, or lone carriage returns. All become `\\n` when it is saved.
    """

    text: str
    has_returns: bool = False
    is_mixed: bool = False


def read_text(content: bytes) -> TextFile | None:
    """The text of a file; None if it is no UTF-8, or has null characters."""
    if b"\0" in content:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    pairs = text.count("\r\n")
    is_uniform = text.count("\r") == pairs and pairs in (0, text.count("\n"))
    return TextFile(unified(text), has_returns=bool(pairs) and is_uniform, is_mixed=not is_uniform)


def unified(text: str) -> str:
    """The text with `\\n` for every kind of line end: browsers send `\\r\\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def file_content(text: str, *, has_returns: bool) -> bytes:
    """The bytes of a file with this text, whatever line ends it has. Raises UnicodeEncodeError for lone surrogates."""
    found = unified(text)
    return (found.replace("\n", "\r\n") if has_returns else found).encode()


def language_of(name: str) -> str:
    """What an editor highlights in a file of this name: `yaml`, `python`, `shell`, or nothing."""
    return _BY_SUFFIX.get(name.lower().rpartition(".")[2], "")
