"""The form of an announcement."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from hekla.apps.announcements.models import Announcement
from hekla.pages.frame.selects import ManyCheckboxes


class AnnouncementForm(forms.ModelForm):
    """A new announcement."""

    class Meta:
        model = Announcement
        fields = ["text", "text_zh", "level", "begin_at", "end_at", "tenants"]
        widgets = {
            "text": forms.Textarea({"rows": 2}),
            "text_zh": forms.Textarea({"rows": 2}),
            "begin_at": forms.DateTimeInput({"type": "datetime-local"}),
            "end_at": forms.DateTimeInput({"type": "datetime-local"}),
            "tenants": ManyCheckboxes,
        }
        help_texts = {
            "text_zh": _("For people who use the console in Chinese. Leave empty: they read the English text."),
            "begin_at": _("Leave empty: now."),
            "end_at": _("Leave empty: until it is withdrawn."),
            "tenants": _("Only members of these tenants see it. Select none to show it to everybody."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self.fields["begin_at"].required = False

    def values(self) -> dict[str, Any]:
        """The cleaned values, without the tenants."""
        return {name: value for name, value in self.cleaned_data.items() if name != "tenants"}
