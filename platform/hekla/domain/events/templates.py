"""Events of templates of flows, presets, and the gallery. The subject is the template or the preset."""

from typing import Annotated

from pydantic import Field

from hekla.domain.events.base import Event, Name


class JobTemplateCreated(Event):
    name: Name


class JobTemplateChanged(Event):
    """`fields`: the changed fields of the job."""

    name: Name
    fields: Annotated[tuple[Name, ...], Field(max_length=64)] = ()


class JobTemplateDeleted(Event):
    name: Name


class PresetSaved(Event):
    """A preset for new jobs was saved; it may replace another."""

    name: Name


class PresetRenamed(Event):
    name: Name
    old: Name


class PresetDefaultChanged(Event):
    """The preset became the default of new jobs, or is no longer the default."""

    name: Name
    is_default: bool


class PresetDeleted(Event):
    name: Name


class TemplatePublished(Event):
    """A template was added to the gallery, or a new version of one."""

    title: Name
    version: int


class TemplateWithdrawn(Event):
    title: Name


class JobCreatedFromTemplate(Event):
    """`template`: its uid."""

    template: Name
    title: Name
    version: int
