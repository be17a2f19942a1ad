"""Buttons of the rows of lists, built in Python because a list has a hundred: as `c-button` and `c-post` elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.safestring import SafeString

from hekla.pages.frame import html
from hekla.pages.frame.html import text


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked before a form is sent: what happens, the title, and the label of the button that confirms."""

    fate: str
    title: str
    confirm: str


@dataclass(frozen=True, slots=True)
class Button:
    """A small button. `words`: its label, or its name if it `shows` only an icon, `picture`."""

    words: str
    kind: str = "plain"
    picture: str = ""
    shows_words: bool = True

    def link(self, address: str) -> str:
        """As a link."""
        return f'<a class="{self._class}"{self._name} href="{text(address)}">{self._content}</a>'

    def submit(self) -> str:
        """As the button of a form."""
        return f'<button class="{self._class}" type="submit"{self._name}>{self._content}</button>'

    @property
    def _class(self) -> str:
        return f"button button-{self.kind} button-small"

    @property
    def _name(self) -> str:
        words = text(self.words)
        return "" if self.shows_words else f' aria-label="{words}" title="{words}"'

    @property
    def _content(self) -> str:
        words = f"<span>{text(self.words)}</span>" if self.shows_words else ""
        return (html.icon(self.picture) if self.picture else "") + words


def post_form(
    address: str, button: Button, token: object, fields: Mapping[str, str] = {}, question: Question | None = None
) -> SafeString:
    """A form with one button. `token`: against forgery; empty in live parts, where the script adds it."""
    asks = ""
    if question:
        fate, title, confirm = map(text, (question.fate, question.title, question.confirm))
        asks = f' data-confirm="{fate}" data-confirm-title="{title}" data-confirm-do="{confirm}"'
    inputs = hidden("csrfmiddlewaretoken", token) if token else ""
    inputs += "".join(hidden(name, value) for name, value in fields.items())
    place = text(address)
    return SafeString(f'<form class="inline" method="post" action="{place}"{asks}>{inputs}{button.submit()}</form>')


def hidden(name: str, value: object) -> str:
    """A hidden field."""
    return f'<input type="hidden" name="{name}" value="{text(value)}">'


def row_actions(*parts: str) -> SafeString:
    """The cell of a row with these buttons and forms."""
    return SafeString(f'<div class="row-actions">{"".join(parts)}</div>')
