"""The form that edits a quota."""

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _

from hekla.apps.quotas.forms import QuotaForm
from hekla.pages.frame.edit_form import ValuesEditForm


class QuotaChangeForm(ValuesEditForm, QuotaForm):
    """The quota of a tenant, of each member, or of one. A person who chooses another one gets its limits to check."""

    is_other = False

    def merge(self, data: QueryDict) -> list[str]:
        """The same, but the limits of another quota are no conflict: nobody changed them."""
        loaded = data.get(self.add_initial_prefix("whose"), "")
        conflicts = super().merge(data)
        self.is_other = loaded not in ("", data.get(self.add_prefix("whose")))
        return [] if self.is_other else conflicts

    def clean_whose(self) -> str:
        """The owner whose limits the person has read."""
        if self.is_other:
            raise forms.ValidationError(
                _("Unchanged fields now show the limits of this owner. Check them, and save again.")
            )
        return str(self.cleaned_data["whose"])
