"""Forms that invite a person, and that cut a recording."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.sharing.roles import DESCRIPTIONS
from hekla.apps.sharing.services import MAX_HOURS
from hekla.domain.sharing import GuestRole


class GuestForm(forms.Form):
    """A person, what they may do, and for how long. `is_tool`: of a tool, which cannot be watched only."""

    person = forms.CharField(
        label=_("User name"),
        max_length=150,
        help_text=_("A member of the job's tenant. Nothing opens before they accept."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(label=_("Role"), initial=GuestRole.OBSERVER)
    hours = forms.IntegerField(label=_("Hours"), min_value=1, max_value=MAX_HOURS, initial=1)

    def __init__(self, *args: Any, is_tool: bool, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        roles = [(role, words) for role, words in DESCRIPTIONS.items() if role is not GuestRole.OBSERVER or not is_tool]
        field = self.fields["role"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  (declared above)
        field.choices = [(role.value, str(words)) for role, words in roles]
        if is_tool:
            field.initial = GuestRole.PEER


class CutForm(forms.Form):
    """A part of a recording, in seconds after its begin."""

    begin = forms.FloatField(label=_("From"), min_value=0)
    end = forms.FloatField(label=_("To"), min_value=0)
