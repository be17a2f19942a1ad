"""Forms about priority classes."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.forms import NAME_ERRORS, refuse_reserved
from hekla.apps.priorities.models import PriorityClass


class PriorityClassForm(forms.ModelForm):
    """A new class."""

    class Meta:
        model = PriorityClass
        fields = ["name", "value", "description", "is_default", "never_preempts", "is_offered", "tenants"]
        widgets = {"tenants": forms.CheckboxSelectMultiple, "description": forms.Textarea({"rows": 2})}
        error_messages = {"name": NAME_ERRORS}
        help_texts = {
            "value": _("The higher one goes first. A new value is for jobs to come; those that wait keep theirs."),
            "is_default": _("It takes the place of the class that is the default now."),
            "never_preempts": _("Its jobs go first in their queue, and nobody is evicted for them."),
            "is_offered": _("Not: nobody can choose it. Jobs that were submitted with it keep their priority."),
            "tenants": _("Who may use it. None chosen: everybody."),
        }

    def clean_name(self) -> str:
        """A name that addresses do not use otherwise."""
        return refuse_reserved(self.cleaned_data["name"])

    def values(self) -> dict[str, Any]:
        """The plain fields."""
        return {name: value for name, value in self.cleaned_data.items() if name not in {"name", "tenants"}}


class PriorityClassChangeForm(PriorityClassForm):
    """A class that exists; its name stays."""

    class Meta(PriorityClassForm.Meta):
        fields = PriorityClassForm.Meta.fields[1:]
