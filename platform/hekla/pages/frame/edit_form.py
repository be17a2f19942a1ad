"""Forms of something stored, which somebody else may change while the page is open."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _

from hekla.apps.event_log import changes
from hekla.domain.errors import Refused


class EditForm(forms.ModelForm):  # type: ignore[type-arg]  # of any model
    """Mixin of a form that changes a row. The page carries the values that the person saw, as hidden initial values.

    Fields that the person left alone keep what is stored now. If both the person and somebody else changed a field, the
    form is not valid and says so; saved again, it takes the person's value.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        for name in self.initial.keys() & self.fields.keys():
            self.fields[name].show_hidden_initial = True

    def full_clean(self) -> None:
        """Take over what somebody else has changed meanwhile, then validate."""
        conflicts = self._merge(self.data.copy()) if isinstance(self.data, QueryDict) else []
        super().full_clean()
        for name in conflicts:
            self.add_error(name, _("Somebody else changed this meanwhile. Save again to use your value."))

    @contextmanager
    def saving(self) -> Iterator[None]:
        """The service call that saves the form. Raises Refused if somebody else saved a change since validation."""
        with changes.requiring(self._require_same):
            yield

    def _require_same(self) -> None:
        """Called when the row is locked."""
        present = type(self)(instance=type(self.instance)._default_manager.get(pk=self.instance.pk))
        if present._stored() != self._stored():
            raise Refused(_("Somebody else saved a change at the same moment. Check the values, and save again."))

    def _stored(self) -> dict[str, list[str]]:
        return {name: self._raw(name) for name in self.fields if self.fields[name].show_hidden_initial}

    def _merge(self, data: QueryDict) -> list[str]:
        """Bring the data up to date with the row. Returns the fields that the person and somebody else changed."""
        conflicts, changed = [], self.changed_data
        if not any(self.add_initial_prefix(name) in data for name in self.fields):
            return []  # a program that sends only values
        for name, stored in self._stored().items():
            before = [value.replace("\r\n", "\n") for value in data.getlist(self.add_initial_prefix(name))]
            if sorted(before) == sorted(stored):
                continue
            if name not in changed:
                data.setlist(self.add_prefix(name), stored)
            elif self.fields[name].has_changed(self[name].initial, self[name].data):
                conflicts.append(name)
            data.setlist(self.add_initial_prefix(name), stored)
        self.data = data
        return conflicts

    def _raw(self, name: str) -> list[str]:
        """The stored value of a field as a browser sends its hidden initial value."""
        field = self.fields[name]
        widget = field.hidden_widget()
        value = widget.format_value(field.prepare_value(self[name].initial))
        if isinstance(widget, forms.MultipleHiddenInput):
            return [str(one) for one in value or ()]
        return ["" if value is None else str(value).replace("\r\n", "\n")]
