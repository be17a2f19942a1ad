"""A job as manifests of other systems: which formats can hold it, and what each loses."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from hekla.domain import formats
from hekla.domain.errors import Invalid, NotFound
from hekla.domain.formats import Format
from hekla.domain.jobspec import JobSpec


@dataclass(frozen=True, slots=True)
class ManifestOption:
    """A manifest format. `losses`: what it cannot express; `refusals`: why it cannot hold the job at all."""

    format: Format
    losses: Sequence[str] = ()
    refusals: Sequence[str] = ()


def manifest_options(spec: JobSpec) -> list[ManifestOption]:
    """All formats: first those without losses, last those that cannot hold the job."""
    found = [_offer(spec, form) for form in formats.WRITABLE]
    return sorted(found, key=lambda offer: (bool(offer.refusals), bool(offer.losses)))


def text(spec: JobSpec, word: str) -> str:
    """The job's manifest in that format. Raises NotFound for an unknown format, Invalid if it cannot hold the job."""
    form = next((form for form in formats.WRITABLE if form.word == word), None)
    if form is None:
        raise NotFound(_("Unknown manifest format."))
    return formats.write(spec, form).text


def _offer(spec: JobSpec, form: Format) -> ManifestOption:
    try:
        return ManifestOption(form, losses=formats.losses(spec, form))
    except Invalid as error:
        return ManifestOption(form, refusals=[problem.message for problem in error.problems])
