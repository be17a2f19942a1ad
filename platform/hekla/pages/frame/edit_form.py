"""Forms of something stored, which somebody else may change while the page is open."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _

from hekla.apps.event_log import changes
from hekla.domain.errors import Refused

Values = Mapping[str, Any]


class EditForm(forms.BaseForm):
    """Mixin of a form that edits stored values. The page carries those that the person read, as hidden initial values.

    Fields that the person left alone keep what is stored now. If both the person and somebody else changed a field, the
    form is not valid and says so; saved again, it takes the person's value.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        for name in self.initial.keys() & self.fields.keys():
            self.fields[name].show_hidden_initial = True

    def stored(self) -> Values:
        """The initial values of what is stored now."""
        raise NotImplementedError

    def full_clean(self) -> None:
        """Take over what somebody else has changed meanwhile, then validate."""
        conflicts = self.merge(self.data.copy()) if isinstance(self.data, QueryDict) else []
        super().full_clean()
        for name in conflicts:
            self.add_error(name, _("Somebody else changed this meanwhile. Save again to use your value."))

    @contextmanager
    def saving(self) -> Iterator[None]:
        """The service call that saves the form. Raises Refused if somebody else saved a change since validation."""
        with changes.requiring(self._require_same):
            yield

    def _require_same(self) -> None:
        """Called when what the form edits is locked."""
        if self._as_hidden(self.stored()) != self._as_hidden(self.initial):
            raise Refused(_("Somebody else saved a change at the same moment. Check the values, and save again."))

    def merge(self, data: QueryDict) -> list[str]:
        """Bring the data up to date with what is stored. Returns the fields that both changed."""
        conflicts, changed = [], self.changed_data
        if not any(self.add_initial_prefix(name) in data for name in self.fields):
            return []  # a program that sends only values
        for name, stored in self._as_hidden(self.initial).items():
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

    def _as_hidden(self, values: Values) -> dict[str, list[str]]:
        """These values by field, as a browser sends them as hidden initial values."""
        return {
            name: _hidden_values(field, values.get(name))
            for name, field in self.fields.items()
            if field.show_hidden_initial
        }


class ModelEditForm(EditForm, forms.ModelForm):  # type: ignore[type-arg]  # of any model
    """Mixin of a form that edits a row."""

    def stored(self) -> Values:
        """The values of the row."""
        return type(self)(instance=self._meta.model._default_manager.get(pk=self.instance.pk)).initial


class ValuesEditForm(EditForm):
    """Mixin of a form that edits other stored values. `stored`: reads them."""

    def __init__(self, *args: Any, stored: Callable[[], Values], **kwargs: Any) -> None:  # noqa: ANN401
        self._read = stored
        super().__init__(*args, initial=dict(stored()), **kwargs)

    def stored(self) -> Values:
        """The values that are stored now."""
        return self._read()


def _hidden_values(field: forms.Field, value: object) -> list[str]:
    widget = field.hidden_widget()
    text = widget.format_value(field.prepare_value(value))
    if isinstance(widget, forms.MultipleHiddenInput):
        return [str(one) for one in text or ()]
    return ["" if text is None else str(text).replace("\r\n", "\n")]
