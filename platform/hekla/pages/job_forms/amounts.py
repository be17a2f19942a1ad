"""Amounts of resources as people write them: “8 GB”, “8 gib”, “500 m”."""

import re
from typing import Any

from django import forms
from django.utils.translation import gettext as _

_TYPED = re.compile(r"(?P<number>[\d.,]+)\s*(?P<unit>[kKmMgGtTpP])(?P<binary>[iI]?)[bB]?(?:ytes?)?", re.ASCII)
_CORES = re.compile(r"(?P<number>[\d.]+)\s*(?:(?P<milli>m)|cores?|cpus?)", re.ASCII | re.IGNORECASE)
_FEWEST_BYTES = 4 * 1024 * 1024
"""Fewer bytes hold no process: who types “8” means GiB."""
OFFERED = {"cpu": ("500m", "1", "2", "4", "8", "16", "32"), "memory": ("512Mi", "1Gi", "4Gi", "16Gi", "64Gi", "256Gi")}
"""The amounts that a form offers, by resource."""


class AmountField(forms.CharField):
    """An amount of `resource`; cleans to a Kubernetes quantity where the text is readable, else to the text.

    Whether it is a valid quantity is the JobSpec's matter.
    """

    def __init__(self, resource: str, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(required=False, **kwargs)
        self.resource = resource
        if resource in OFFERED:
            self.widget.attrs["list"] = f"amounts-{resource}"

    def clean(self, value: str | None) -> str:
        """The quantity. Raises ValidationError for an amount of memory that must lack its unit."""
        return _read(self.resource, (super().clean(value) or "").strip())


def is_unchanged(resource: str, amount: str) -> bool:
    """Whether the field of the resource returns this amount as it is."""
    try:
        return _read(resource, amount) == amount
    except forms.ValidationError:
        return False


def _read(resource: str, text: str) -> str:
    if resource != "memory":
        return _cores(text) if resource == "cpu" else text
    if text.isdecimal() and 0 < int(text[:20]) < _FEWEST_BYTES:
        sentence = _("“%(number)s” is a number of bytes. For %(number)s GiB enter %(number)sGi.")
        raise forms.ValidationError(sentence % {"number": text})
    return _bytes(text)


def _cores(text: str) -> str:
    match = _CORES.fullmatch(text)
    return match["number"] + (match["milli"] or "").lower() if match else text


def _bytes(text: str) -> str:
    """A unit in any case, with or without its B: GB are 10⁹ bytes, GiB are 2³⁰."""
    match = _TYPED.fullmatch(text)
    if match is None:
        return text
    if text.endswith("m"):  # in a quantity, a thousandth
        sentence = _("“%(text)s” is less than one byte. For MiB enter %(number)sMi.")
        raise forms.ValidationError(sentence % {"text": text, "number": match["number"]})
    unit = match["unit"].upper() if match["binary"] or match["unit"] not in "kK" else "k"
    return match["number"] + unit + match["binary"].lower()
