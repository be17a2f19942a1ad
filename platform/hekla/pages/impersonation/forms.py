"""Forms of impersonation."""

from django import forms
from django.utils.translation import gettext_lazy as _


class ReasonForm(forms.Form):
    """The reason why an admin acts for a person."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=200,
        help_text=_("The person sees this reason, and the audit log records it."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autofocus": True}),
    )
