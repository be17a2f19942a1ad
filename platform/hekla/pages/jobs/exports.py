"""A job as the manifests that other systems read: which kinds can hold it, and what each of them loses of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from hekla.domain import formats
from hekla.domain.errors import Invalid, NotFound
from hekla.domain.formats import Format
from hekla.domain.jobspec import JobSpec


@dataclass(frozen=True, slots=True)
class ManifestOption:
    """A kind of manifest. `losses`: what of the job it cannot say; `refusals`: why it cannot hold the job at all."""

    format: Format
    losses: Sequence[str] = ()
    refusals: Sequence[str] = ()


def manifest_options(spec: JobSpec) -> list[ManifestOption]:
    """Every kind: first those that hold the job whole, last those that cannot hold it."""
    found = [_offer(spec, form) for form in formats.FORMATS]
    return sorted(found, key=lambda offer: (bool(offer.refusals), bool(offer.losses)))


def text(spec: JobSpec, word: str) -> str:
    """The job as that kind of manifest. Raises NotFound for an unknown kind, Invalid where it cannot hold the job."""
    form = next((form for form in formats.FORMATS if form.word == word), None)
    if form is None:
        raise NotFound(_("Unknown manifest format."))
    return formats.write(spec, form).text


def _offer(spec: JobSpec, form: Format) -> ManifestOption:
    try:
        return ManifestOption(form, losses=formats.write(spec, form).notes)
    except Invalid as error:
        return ManifestOption(form, refusals=[problem.message for problem in error.problems])
