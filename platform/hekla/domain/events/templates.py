"""What jobs begin with: templates of flows, presets, and the gallery. The subject is the template or the preset."""

from typing import Annotated

from pydantic import Field

from hekla.domain.events.base import Event, Name


class JobTemplateCreated(Event):
    name: Name


class JobTemplateChanged(Event):
    """`fields`: what of the job is no longer as it was."""

    name: Name
    fields: Annotated[tuple[Name, ...], Field(max_length=64)] = ()


class JobTemplateDeleted(Event):
    name: Name


class PresetSaved(Event):
    """A job was kept to begin others with; perhaps in the place of another."""

    name: Name


class PresetRenamed(Event):
    name: Name
    old: Name


class PresetDefaultChanged(Event):
    """New jobs begin with it, or no longer."""

    name: Name
    is_default: bool


class PresetDeleted(Event):
    name: Name


class TemplatePublished(Event):
    """A template of the gallery, or the next version of one."""

    title: Name
    version: int


class TemplateWithdrawn(Event):
    title: Name


class JobCreatedFromTemplate(Event):
    """`template`: its uid."""

    template: Name
    title: Name
    version: int
