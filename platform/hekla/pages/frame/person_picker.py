"""A field for a person: their user name, with the people to choose from as suggestions that the browser searches.

It works without a script. Which people it offers is decided by the view: never more than its reader may see.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.html import format_html
from django.utils.safestring import SafeString

from hekla.apps.accounts.models import User
from hekla.pages.frame.selects import option

MOST_OFFERED = 200
"""With more people, any other user name can be typed."""


class PersonPicker(forms.TextInput):
    """A text field with suggestions. `people`: set by the form; nobody by default."""

    def __init__(self, attrs: Mapping[str, Any] | None = None) -> None:
        super().__init__({"autocomplete": "off", "spellcheck": "false", **(attrs or {})})
        self.people: QuerySet[User] = User.objects.none()

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:  # noqa: ANN401
        """The field, and below it the suggestions."""
        suggestions = f"id_{name}_people"
        field = super().render(name, value, {**(attrs or {}), "list": suggestions}, renderer)
        return format_html('{}<datalist id="{}">{}</datalist>', field, suggestions, options(self.people))


def offer(field: forms.Field, people: QuerySet[User]) -> None:
    """Let a field with this widget suggest these people."""
    if isinstance(field.widget, PersonPicker):
        field.widget.people = people


def options(people: QuerySet[User] | Iterable[User]) -> SafeString:
    """The options of these people: the user name to enter, and the full name."""
    if isinstance(people, QuerySet):
        names = people.order_by("username").values_list("username", "display_name")[:MOST_OFFERED]
        labelled = [(username, display_name or username) for username, display_name in names]
    else:
        labelled = [(one.username, str(one)) for one in people]
    return SafeString("".join([option(key, label) for key, label in labelled]))
