"""Manifest formats: read manifests into a JobSpec, and write a JobSpec as a manifest."""

from hekla.domain.formats.base import Format, LoadedJob
from hekla.domain.formats.cronjob import LoadedSchedule, dump_schedule, load_schedule
from hekla.domain.formats.files import is_companion
from hekla.domain.formats.flow_manifests import LoadedFlow, dump_flow, dump_template, holds_flows, load_flow
from hekla.domain.formats.inspection import Inspection, inspect, inspect_flow
from hekla.domain.formats.manifests import (
    DumpedManifest,
    dump,
    dump_whole,
    is_beside,
    kind_of,
    load,
    load_among,
    load_many,
    losses,
    write,
)
from hekla.domain.formats.merge_patch import apply_patch
from hekla.domain.formats.queue_manifest import LoadedQueue, dump_queue, holds_queues, load_queue
from hekla.domain.formats.registry import FORMATS, WRITABLE

__all__ = [
    "FORMATS",
    "WRITABLE",
    "DumpedManifest",
    "Format",
    "Inspection",
    "LoadedFlow",
    "LoadedJob",
    "LoadedQueue",
    "LoadedSchedule",
    "apply_patch",
    "dump",
    "dump_flow",
    "dump_queue",
    "dump_schedule",
    "dump_template",
    "dump_whole",
    "holds_flows",
    "holds_queues",
    "inspect",
    "inspect_flow",
    "is_beside",
    "is_companion",
    "kind_of",
    "load",
    "load_among",
    "load_flow",
    "load_many",
    "load_queue",
    "load_schedule",
    "losses",
    "write",
]
