"""The supported kinds of manifest."""

from collections.abc import Mapping
from typing import Any

from hekla.domain.formats.base import Format
from hekla.domain.formats.flinkdeployment import FLINKDEPLOYMENT
from hekla.domain.formats.jaxjob import JAXJOB
from hekla.domain.formats.kubernetes_job import KUBERNETES_JOB
from hekla.domain.formats.mpijob import MPIJOB, MPIJOB_V1
from hekla.domain.formats.openpai import OPENPAI, OPENPAI_V1
from hekla.domain.formats.paddlejob import PADDLEJOB
from hekla.domain.formats.pytorchjob import PYTORCHJOB
from hekla.domain.formats.raycluster import RAYCLUSTER
from hekla.domain.formats.rayjob import RAYJOB
from hekla.domain.formats.sparkapplication import SPARKAPPLICATION
from hekla.domain.formats.tfjob import TFJOB
from hekla.domain.formats.trainjob import TRAINJOB
from hekla.domain.formats.volcano import VOLCANO
from hekla.domain.formats.xgboostjob import XGBOOSTJOB

FORMATS = (
    VOLCANO,
    PYTORCHJOB,
    TFJOB,
    MPIJOB,
    MPIJOB_V1,
    PADDLEJOB,
    XGBOOSTJOB,
    JAXJOB,
    TRAINJOB,
    RAYCLUSTER,
    RAYJOB,
    SPARKAPPLICATION,
    FLINKDEPLOYMENT,
    KUBERNETES_JOB,
    OPENPAI,
    OPENPAI_V1,
)
WRITABLE = tuple(form for form in FORMATS if form.is_writable)
"""The kinds that can be written too."""


def find(api_version: object, kind: object) -> Format | None:
    """The format with that apiVersion and kind; None if unknown."""
    return next(
        (one for one in FORMATS if not one.recognise and (one.api_version, one.kind) == (api_version, kind)), None
    )


def formats_of_kind(kind: object) -> list[Format]:
    """The formats of that kind, whatever their apiVersion."""
    return [one for one in FORMATS if one.kind == kind and not one.recognise]


def recognise(job: Mapping[str, Any]) -> Format | None:
    """The format of a manifest without apiVersion and kind; None if unknown."""
    return next((one for one in FORMATS if one.recognise and one.recognise(job)), None)
