"""Manifests in and out: what people already have, read into a JobSpec, and a JobSpec written as what others read."""

from hekla.domain.formats.base import Format, Loaded
from hekla.domain.formats.manifests import Written, dump, load, write
from hekla.domain.formats.registry import FORMATS

__all__ = ["FORMATS", "Format", "Loaded", "Written", "dump", "load", "write"]
