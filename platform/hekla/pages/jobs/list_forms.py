"""Forms of the list of jobs: bulk actions, saved views, and columns."""

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy

from hekla.apps.jobs.filters import JobFilter
from hekla.apps.jobs.models import SavedView
from hekla.apps.jobs.services import BULK_ACTIONS
from hekla.apps.tenancy.models import Tenant
from hekla.domain.job_kinds import MAX_PRIORITY
from hekla.pages.jobs.columns import COLUMNS

MOST_IN_ADDRESS = 1000
_PARAMETERS = {*JobFilter.base_filters, "sort", "group", "deleted"}


class QueryField(forms.CharField):
    """The URL query of a list, without its page."""

    def __init__(self) -> None:
        super().__init__(required=False, max_length=MOST_IN_ADDRESS, widget=forms.HiddenInput)

    def to_python(self, value: Any) -> str:  # noqa: ANN401  (whatever was sent)
        """The query, reduced to the parameters of a list."""
        query = QueryDict(super().to_python(value) or "", mutable=True)
        for word in set(query) - _PARAMETERS:
            del query[word]
        return query.urlencode()


class ActionForm(forms.Form):
    """A bulk action. `all`: on all jobs of the list with this `query`, else on the selected jobs. `priority`: the new
    priority.

    `query` stays as it was sent: without an unknown filter, the list would have more jobs than the person meant.
    """

    action = forms.ChoiceField(choices=[(name, name) for name in BULK_ACTIONS])
    priority = forms.IntegerField(required=False, min_value=-MAX_PRIORITY, max_value=MAX_PRIORITY)
    all = forms.ChoiceField(choices=[("yes", "yes")], required=False)
    query = forms.CharField(required=False, max_length=MOST_IN_ADDRESS)


class JobListSettingsForm(forms.Form):
    """The columns, and the view that the list opens with."""

    columns = forms.MultipleChoiceField(choices=[(column.name, column.label) for column in COLUMNS], required=False)
    opens_with = forms.ModelChoiceField(SavedView.objects.none(), required=False)

    def __init__(self, data: QueryDict, *, views: QuerySet[SavedView]) -> None:
        super().__init__(data)
        self.fields["opens_with"].queryset = views  # type: ignore[attr-defined]


class ViewForm(forms.Form):
    """A name for a saved view. `tenant`: the tenant whose members can also see it."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=60)
    query = QueryField()
    tenant = forms.ModelChoiceField(Tenant.objects.none(), to_field_name="slug", required=False)

    def __init__(self, data: QueryDict, *, tenants: QuerySet[Tenant]) -> None:
        super().__init__(data)
        self.fields["tenant"].queryset = tenants  # type: ignore[attr-defined]
