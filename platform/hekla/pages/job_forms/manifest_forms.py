"""The forms of manifests: typed, uploaded, or uploaded to fill in the submission form."""

from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest
from django.templatetags.static import static
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.pages.job_forms.forms import SecretsField, code_input

MAX_MANIFEST_BYTES = 1024 * 1024


def yaml_editor(request: HttpRequest) -> dict[str, str]:
    """The attributes of a text area that scripts turn into an editor. Its form's address answers `do=check`."""
    return {
        "data-yaml-editor": static("vendor/codemirror.min.js"),
        "data-nonce": str(request.csp_nonce),  # type: ignore[attr-defined]
        "data-hint": _(
            "Ctrl+Space offers fields and values, F8 goes to the next problem. Esc, then Tab leaves the editor."
        ),
    }


class ManifestForm(forms.Form):
    """A job manifest, typed or uploaded."""

    text = forms.CharField(
        label=gettext_lazy("Manifest"),
        required=False,
        strip=False,
        widget=code_input(24),
        help_text=gettext_lazy(
            "A job manifest of Volcano, Kubeflow, Ray, Spark, Flink, Kubernetes or OpenPAI, at most 1 MiB."
        ),
    )
    upload = forms.FileField(label=gettext_lazy("Or upload a file"), required=False)

    def clean_upload(self) -> str:
        """The text of the file; empty without a file."""
        return _text_of(self.cleaned_data["upload"])

    def clean(self) -> dict[str, Any]:
        """The cleaned data, with the uploaded text in `text` if a file was chosen."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("upload"):
            cleaned["text"] = cleaned["upload"]
        if not cleaned.get("text") and not self.errors:
            self.add_error("text", _("Enter a manifest, or choose a file."))
        return cleaned


class JobManifestForm(ManifestForm):
    """A job manifest, and the secrets that its commands refer to."""

    secrets = SecretsField()


class UploadForm(forms.Form):
    """A manifest file that fills in the submission form. The file is optional there."""

    use_required_attribute = False
    upload = forms.FileField(
        label=gettext_lazy("Manifest file"),
        error_messages={"required": gettext_lazy("Choose a file.")},
        widget=forms.ClearableFileInput({"form": "submission"}),
        help_text=gettext_lazy(
            "YAML or JSON: a job of Volcano, Kubeflow, Ray, Spark, Flink, Kubernetes or OpenPAI, at most 1 MiB. It "
            "replaces the form. You can undo this."
        ),
    )

    def clean_upload(self) -> str:
        """The text of the file."""
        return _text_of(self.cleaned_data["upload"])

    @property
    def file_name(self) -> str:
        """The name of the chosen file."""
        return str(getattr(self.files.get("upload"), "name", ""))

    def refuse(self, error: HeklaError) -> None:
        """Show at the field why the file cannot be used."""
        problems = error.problems if isinstance(error, Invalid) else (Problem("", error.message),)
        for problem in problems:
            self.add_error("upload", f"{problem.path}: {problem.message}" if problem.path else problem.message)


def _text_of(upload: "UploadedFile[bytes] | None") -> str:
    if upload is None:
        return ""
    size = upload.size or 0
    if size > MAX_MANIFEST_BYTES:
        raise forms.ValidationError(_("The file has %.1f MiB. The limit is 1 MiB.") % (size / 2**20))
    text: str = upload.read().decode(errors="replace")
    return text
