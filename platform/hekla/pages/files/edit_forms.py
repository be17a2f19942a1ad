"""The form of an edited text file."""

from django import forms
from django.http import HttpRequest
from django.templatetags.static import static
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.domain import text_files
from hekla.pages.job_forms.forms import code_input

_LONGEST_PATH = 4096
_DIGEST = r"^[0-9a-f]{64}$"


class TextFileForm(forms.Form):
    """The text, and what the person knows of the file: `base`, the SHA-256 of what they edit; empty for a new file.

    `other`: the SHA-256 of what another writer has made of it meanwhile, as far as the person has seen it.
    """

    use_required_attribute = False
    text = forms.CharField(
        label=gettext_lazy("Content"),
        required=False,
        strip=False,
        widget=code_input(24),
        help_text=gettext_lazy("UTF-8 text, at most 1 MiB."),
    )
    base = forms.RegexField(_DIGEST, required=False)
    other = forms.RegexField(_DIGEST, required=False)
    has_returns = forms.BooleanField(required=False)
    new_path = forms.CharField(
        label=gettext_lazy("Path"),
        required=False,
        strip=False,
        max_length=_LONGEST_PATH,
        help_text=gettext_lazy("Below the working folder. Missing folders are created. No existing file is replaced."),
    )

    def clean(self) -> dict[str, object]:
        """The cleaned data, with the bytes of the file in `content`."""
        cleaned = super().clean() or self.cleaned_data
        try:
            content = text_files.file_content(cleaned.get("text", ""), has_returns=bool(cleaned.get("has_returns")))
        except UnicodeEncodeError:
            self.add_error("text", _("The text has characters that UTF-8 does not have."))
            return cleaned
        if len(content) > text_files.MOST_BYTES:
            self.add_error("text", _("The text has %.1f MiB. The limit is 1 MiB.") % (len(content) / 2**20))
        return {**cleaned, "content": content}


def file_editor(request: HttpRequest, path: str) -> dict[str, str]:
    """The attributes of a text area that scripts turn into an editor of the file."""
    return {
        "data-file-editor": static("vendor/codemirror.min.js"),
        "data-nonce": str(request.csp_nonce),  # type: ignore[attr-defined]
        "data-language": text_files.language_of(path),
        "data-hint": _("Ctrl+S saves. Esc, then Tab leaves the editor."),
    }
