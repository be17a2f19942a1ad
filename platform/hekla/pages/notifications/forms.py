"""The forms that edit stored notification settings."""

from hekla.apps.notifications.forms import ChoiceForm, PreferenceForm
from hekla.pages.frame.edit_form import ValuesEditForm


class PreferenceChangeForm(ValuesEditForm, PreferenceForm):
    """A person's defaults."""


class JobChoiceForm(ValuesEditForm, ChoiceForm):
    """A person's settings for one job."""
