"""The design page: all design tokens and components with sample content, for authors of pages.

It needs no database rows, so it looks the same on every installation and shows rare states.
"""

import re
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from hekla.domain.phases import GangPhase, JobPhase, PodPhase
from hekla.lib.checkout import CHECKOUT
from hekla.lib.diff import diff_lines
from hekla.pages.frame import plots

SURFACES = ("background", "surface", "sunken", "raised", "line", "line-strong", "text", "muted", "brand", "accent")
STATES = ("waiting", "admitted", "running", "done", "failed", "stopped", "borrowed")
PLOTS = tuple(f"plot-{number}" for number in range(1, 8))
MANIFEST = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata:\n  name: digits\n"
LOSSES = ((1, 2.3), (2, 1.1), (3, 0.6), (4, 0.4), (5, 0.33))
WAITING = (("capacity", 300), ("gang", 200), ("priority", 80), ("quota", 120), ("policy", 100), ("data", 100))
RUNNING = ("running", 100)
GANG = {
    PodPhase.RUNNING: 64,
    PodPhase.SUCCEEDED: 6,
    PodPhase.BOUND: 4,
    PodPhase.PREPARING: 4,
    PodPhase.PENDING: 8,
    PodPhase.FAILED: 3,
    PodPhase.LOST: 1,
}


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """The page at /design/."""
    return render(request, "design.html", {"design": samples(timezone.now())})


def samples(now: datetime) -> dict[str, Any]:
    """The context of the page. `now`: the time that the samples are relative to."""
    return {
        "surfaces": SURFACES,
        "states": STATES,
        "plots": PLOTS,
        "icons": icon_names(),
        "phases": sorted({str(phase) for kind in (JobPhase, GangPhase, PodPhase) for phase in kind}),
        "now": now,
        "earlier": now - timedelta(minutes=83),
        "manifest": MANIFEST,
        "changes": diff_lines(MANIFEST, MANIFEST.replace("digits", "letters")),
        "stacks": ("yes", ""),
        "jobs": jobs(now),
        "slots": [{"size": size, "nodes": nodes, "most": 14} for size, nodes in ((8, 2), (4, 5), (2, 9), (1, 14))],
        "devices": devices(),
        "tasks": [gang("ps", {PodPhase.RUNNING: 1}), gang("worker", GANG)],
        "cells": cells(),
        "losses": LOSSES,
        "figure": figure(),
    }


def icon_names() -> list[str]:
    """The icons of the sprite, except the shapes of phases."""
    sprite = CHECKOUT / "static" / "img" / "icons.svg"
    names = re.findall(r'id="([\w-]+)"', sprite.read_text(encoding="utf-8"))
    return [name for name in names if not name.startswith("phase-")]


def jobs(now: datetime) -> list[dict[str, Any]]:
    """Rows of a list, with short and long names, and one name that contains markup."""
    rows = (
        ("digits", "alice", JobPhase.RUNNING, "default", 3, 2),
        ("resnet50-with-a-name-that-is-as-long-as-names-may-be", "bob", JobPhase.PENDING, "vision", 64, 9),
        ("speech-large", "charlie", JobPhase.FAILED, "speech", 8, 200),
        ("<b>not markup</b>", "mallory", JobPhase.COMPLETED, "default", 1, 3000),
    )
    keys = ("name", "owner", "phase", "queue", "pods")
    return [dict(zip(keys, row[:5], strict=True), at=now - timedelta(minutes=row[5])) for row in rows]


def devices() -> list[dict[str, Any]]:
    """Eight GPUs of a node: five allocated, one of them idle."""
    uses, idle = (90, 70, 40, 10, 0, 0, 0, 0), 4
    return [
        {"label": f"GPU {number}: {use} %", "allocated": use > 0 or number == idle, "used": use}
        for number, use in enumerate(uses)
    ]


def gang(name: str, counts: dict[PodPhase, int]) -> dict[str, Any]:
    """A task with this number of pods in each phase."""
    phases = [phase for phase, count in counts.items() for _ in range(count)]
    pods = [
        {"name": f"{name}-{index}", "title": f"{name}-{index}: {phase}", "phase": phase}
        for index, phase in enumerate(phases)
    ]
    return {"name": name, "summary": f"{counts[PodPhase.RUNNING]} / {len(pods)}", "pods": pods}


def cells() -> list[dict[str, Any]]:
    """A reason ribbon with one cell for each reason."""
    ribbon: list[dict[str, Any]] = []
    start = 0
    for kind, width in (*WAITING, RUNNING):
        ribbon.append({"kind": kind, "start": start, "width": width, "words": kind})
        start += width
    return ribbon


def figure() -> SafeString:
    """A loss curve for Plotly."""
    steps, losses = zip(*LOSSES, strict=True)
    plot = plots.new_figure(xaxis_title_text="step", yaxis_title_text="loss")
    plot.add_scatter(x=steps, y=losses, mode="lines+markers", name="train")
    return plots.to_json(plot)
