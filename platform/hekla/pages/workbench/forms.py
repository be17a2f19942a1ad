"""The form that opens a port of a pod."""

from django import forms
from django.utils.translation import gettext_lazy

from hekla.apps.workbench.services import LAST_PORT


class PortForm(forms.Form):
    """A port by its number."""

    port = forms.IntegerField(
        label=gettext_lazy("Port"),
        min_value=1,
        max_value=LAST_PORT,
        help_text=gettext_lazy("On which the program listens, for example 8080."),
    )
