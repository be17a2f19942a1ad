"""Forms of flows and templates: manifests, typed or uploaded, and the name of a job from a template."""

from django import forms
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext_lazy

from hekla.pages.frame.edit_form import ValuesEditForm
from hekla.pages.job_forms.manifest_forms import MAX_MANIFEST_BYTES, ManifestForm


class FlowForm(ManifestForm):
    """A flow, with optional templates."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.fields["text"].help_text = gettext_lazy("A Volcano JobFlow, optionally with JobTemplates. At most 1 MiB.")


class TemplateForm(ManifestForm):
    """A job to save as a template."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.fields["text"].help_text = gettext_lazy(
            "A Volcano JobTemplate, or a job manifest of Volcano, Kubeflow, Ray, Spark, Flink or Kubernetes. At most "
            "1 MiB."
        )


class TemplateChangeForm(ValuesEditForm, TemplateForm):
    """The job of a saved template."""

    def full_clean(self) -> None:
        """The same, with an uploaded file as if it was typed: a conflict shows its text."""
        upload = self.files.get("upload")
        if isinstance(self.data, QueryDict) and upload and (upload.size or 0) <= MAX_MANIFEST_BYTES:
            data = self.data.copy()
            data["text"] = upload.read().decode(errors="replace")
            self.data, self.files = data, MultiValueDict()
        super().full_clean()


class JobNameForm(forms.Form):
    """The name of a job from a template."""

    name = forms.CharField(
        label=gettext_lazy("Job name"), max_length=53, help_text=gettext_lazy("Lowercase letters, digits, hyphens.")
    )
