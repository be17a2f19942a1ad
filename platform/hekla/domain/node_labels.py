"""Labels that people and alert rules set on nodes. The scheduler of Hekla reads them like those of the cluster."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from hekla.domain.errors import Invalid
from hekla.domain.model_errors import explain
from hekla.domain.placement import LabelKey, LabelValue, is_reserved
from hekla.domain.translation import translate

MAX_SET_LABELS = 16


def _is_free(key: str) -> str:
    if is_reserved(key):
        raise ValueError(translate("Hekla sets the label {label} itself.", label=key))
    return key


SetLabelKey = Annotated[LabelKey, AfterValidator(_is_free)]


class NodeLabelChange(BaseModel):
    """Labels to set on a node, and the names of those to remove."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    labels: Annotated[dict[SetLabelKey, LabelValue], Field(max_length=MAX_SET_LABELS)] = {}
    removed: Annotated[tuple[SetLabelKey, ...], Field(max_length=MAX_SET_LABELS)] = ()

    @classmethod
    def parse(cls, labels: Mapping[str, str | None]) -> "NodeLabelChange":
        """The change with these values; None removes a label. Raises Invalid with every problem."""
        values = {key: value for key, value in labels.items() if value is not None}
        try:
            return cls(labels=values, removed=tuple(sorted(labels.keys() - values.keys())))
        except ValidationError as error:
            raise Invalid(explain(error, cls)) from error
