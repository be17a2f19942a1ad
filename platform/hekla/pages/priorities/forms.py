"""Forms of priority classes."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.forms import NAME_ERRORS, refuse_reserved
from hekla.apps.priorities.models import PriorityClass
from hekla.pages.frame.edit_form import ModelEditForm
from hekla.pages.frame.selects import ManyCheckboxes


class PriorityClassForm(forms.ModelForm):
    """A new priority class."""

    class Meta:
        model = PriorityClass
        fields = ["name", "value", "description", "is_default", "never_preempts", "is_offered", "tenants"]
        widgets = {"tenants": ManyCheckboxes, "description": forms.Textarea({"rows": 2})}
        error_messages = {"name": NAME_ERRORS}
        help_texts = {
            "value": _("Jobs with a higher value are scheduled first. A new value applies to new jobs only."),
            "is_default": _("Replaces the current default class."),
            "never_preempts": _("Its jobs are scheduled first in their queue, but never evict other pods."),
            "is_offered": _("If off, new jobs cannot use this class."),
            "tenants": _("Tenants that can use this class. Select none to allow all tenants."),
        }

    def clean_name(self) -> str:
        """The name, unless the URLs reserve it."""
        return refuse_reserved(self.cleaned_data["name"])

    def values(self) -> dict[str, Any]:
        """The cleaned values, without the name and the tenants."""
        return {name: value for name, value in self.cleaned_data.items() if name not in {"name", "tenants"}}


class PriorityClassChangeForm(ModelEditForm, PriorityClassForm):
    """An existing priority class. Its name cannot change."""

    class Meta(PriorityClassForm.Meta):
        fields = PriorityClassForm.Meta.fields[1:]
