"""The forms for notification settings."""

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy

from hekla.apps.notifications.choices import CHANNEL_LABELS, LONG_WAIT_MINUTES, MOMENT_LABELS
from hekla.apps.notifications.selectors import Choice

_MOMENTS = [(str(moment), label) for moment, label in MOMENT_LABELS.items()]
_CHANNELS = [(str(channel), label) for channel, label in CHANNEL_LABELS.items()]
MOST_MINUTES = 60 * 24 * 30


class ChoiceForm(forms.Form):
    """The moments to notify of, the wait that counts as long, in minutes, and the channels."""

    moments = forms.MultipleChoiceField(
        label=gettext_lazy("Events"), choices=_MOMENTS, required=False, widget=forms.CheckboxSelectMultiple
    )
    long_wait_minutes = forms.IntegerField(
        label=gettext_lazy("Long wait after"), min_value=1, max_value=MOST_MINUTES, initial=LONG_WAIT_MINUTES
    )
    channels = forms.MultipleChoiceField(
        label=gettext_lazy("Channels"), choices=_CHANNELS, required=False, widget=forms.CheckboxSelectMultiple
    )

    @classmethod
    def first(cls, choice: Choice) -> dict[str, Any]:
        """The initial values of the form for a stored choice."""
        return {name: getattr(choice, name) for name in cls.base_fields}

    @classmethod
    def showing(cls, choice: Choice, prefix: str | None = None) -> "ChoiceForm":
        """The form with the stored choice."""
        return cls(initial=cls.first(choice), prefix=prefix)

    @classmethod
    def beside(cls, data: QueryDict | None, choice: Choice, prefix: str, *, is_sent: bool) -> "ChoiceForm":
        """The form as a part of a larger one: bound if that was sent; with the typed values, not validated, if it was
        not; with the stored choice if `data` has no values for it.
        """
        sent = cls(data, prefix=prefix, use_required_attribute=False)
        if data is None or sent.add_prefix("long_wait_minutes") not in data:
            return cls.showing(choice, prefix)
        return sent if is_sent else cls(initial={name: sent[name].data for name in sent.fields}, prefix=prefix)

    def values(self) -> dict[str, Any]:
        """The chosen values."""
        return dict(self.cleaned_data)


class PreferenceForm(ChoiceForm):
    """A person's defaults for all their jobs, and their addresses."""

    mail = forms.EmailField(label=gettext_lazy("Email address"), required=False)
    is_digest = forms.BooleanField(
        label=gettext_lazy("Group emails"),
        required=False,
        help_text=gettext_lazy("Combines the notifications of 15 minutes into one email."),
    )
    webhook_url = forms.CharField(
        label=gettext_lazy("Webhook URL"),
        required=False,
        max_length=500,
        help_text=gettext_lazy(
            "Hekla posts each notification there as signed JSON. The signature identifies the sender."
        ),
    )
