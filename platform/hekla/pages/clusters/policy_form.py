"""The form of the scheduling policy."""

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.engine.policy import MAX_POLICY_BYTES
from hekla.pages.frame.edit_form import ValuesEditForm


class PolicyForm(ValuesEditForm, forms.Form):
    """A scheduler configuration, and the reason for the change."""

    text = forms.CharField(
        label=_("Configuration"),
        max_length=MAX_POLICY_BYTES,
        widget=forms.Textarea(attrs={"rows": 18, "class": "code-input", "spellcheck": "false"}),
    )
    note = forms.CharField(label=_("Reason"), required=False, max_length=200)
