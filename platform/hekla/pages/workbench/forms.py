"""Forms of sessions: a port of a pod, and the wish to keep a session."""

from django import forms
from django.utils.translation import gettext_lazy

from hekla.apps.idleness.services import MAX_REASON, MOST_HOURS
from hekla.apps.workbench.services import LAST_PORT


class PortForm(forms.Form):
    """A port by its number."""

    port = forms.IntegerField(
        label=gettext_lazy("Port"),
        min_value=1,
        max_value=LAST_PORT,
        help_text=gettext_lazy("On which the program listens, for example 8080."),
    )


class KeepForm(forms.Form):
    """For how long a session is kept, and why."""

    hours = forms.IntegerField(label=gettext_lazy("Keep for (hours)"), min_value=1, max_value=MOST_HOURS, initial=4)
    reason = forms.CharField(
        label=gettext_lazy("Because"),
        max_length=MAX_REASON,
        help_text=gettext_lazy("For example: an experiment that waits for data. People who see the job can read it."),
    )
