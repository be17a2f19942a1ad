"""Secrets in commands: `<% $secrets.name %>`, replaced only when the pod starts."""

import re
from collections.abc import Iterable, Mapping

from hekla.domain.errors import Invalid, Problem
from hekla.domain.translation import translate
from hekla.domain.validation import is_text

MAX_SECRETS = 100
MAX_BYTES = 32 * 1024
MAX_FILLED = 120 * 1024
"""Linux limits one argument of a command to 128 KiB."""

_VARIABLE = "HEKLA_SCRIPT"
_FROM_VARIABLE = f'hekla_script=${_VARIABLE}; unset {_VARIABLE}; eval "$hekla_script"'
_SHELL = ("bash", "-c")

_PLACE = re.compile(r"<%\s*\$secrets\.([^\s%<>]{1,255})\s*%>")


def secret_names(texts: Iterable[str]) -> set[str]:
    """The secrets that these texts refer to."""
    return {match[1] for text in texts for match in _PLACE.finditer(text)}


def placeholder(name: str) -> str:
    """The placeholder of a secret in a command."""
    return f"<% $secrets.{name} %>"


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders; those of unknown secrets stay."""
    return _PLACE.sub(lambda match: values.get(match[1], match[0]), text)


def fill_command(command: tuple[str, ...], values: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command with its secrets filled in, and environment variables for it.

    A bash script is passed in a variable, so process lists do not show it. The script unsets the variable first.
    """
    words = tuple(fill(word, values) for word in command)
    if words == command or words[:2] != _SHELL or len(words) != len(_SHELL) + 1:
        return words, {}
    return (*_SHELL, _FROM_VARIABLE), {_VARIABLE: words[-1]}


def filled_length(text: str, values: Mapping[str, str]) -> int:
    """The length of the text with its secrets filled in."""
    grown = sum(len(values.get(match[1], match[0])) - len(match[0]) for match in _PLACE.finditer(text))
    return len(text) + grown


def parse(document: object) -> dict[str, str]:
    """Parse a mapping of names to texts. Raises Invalid without repeating any value."""
    if not isinstance(document, Mapping) or not all(
        isinstance(text, str) for pair in document.items() for text in pair
    ):
        raise Invalid([Problem("secrets", translate("Must be a mapping of names to strings."))])
    values = {str(name): str(value) for name, value in document.items()}
    if sentence := problem(values):
        raise Invalid([Problem("secrets", sentence)])
    return values


def problem(values: Mapping[str, str]) -> str:
    """Why these secrets cannot be stored; empty if they can."""
    size = sum(len(text.encode("utf-8", "replace")) for pair in values.items() for text in pair)
    if len(values) > MAX_SECRETS or size > MAX_BYTES:
        return translate(
            "At most {most} secrets with {kib} KiB in total are allowed.", most=MAX_SECRETS, kib=MAX_BYTES // 1024
        )
    if not all(is_text(text) for pair in values.items() for text in pair):
        return translate("NUL characters and broken characters cannot be passed to a program.")
    return ""
