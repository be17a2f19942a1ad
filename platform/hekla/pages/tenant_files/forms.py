"""The form of a tenant's limit of files."""

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.tenancy.models import MAX_FILES_GIB
from hekla.pages.frame.edit_form import ValuesEditForm


class FileLimitForm(ValuesEditForm, forms.Form):
    """From how many GiB on nobody can upload more."""

    files_gib = forms.IntegerField(
        label=_("Limit (GiB)"),
        required=False,
        min_value=0,
        max_value=MAX_FILES_GIB,
        help_text=_("Leave empty for no limit."),
    )
