"""`hekla bench idle`: CPU and memory of all processes of an idle console."""

import json
import os
import time
from typing import Any

import click

from hekla.bench import whole
from hekla.bench.whole import Cost
from hekla.cli import output


@click.command("idle")
@click.option(
    "--seconds", type=click.FloatRange(1, 86_400), default=600.0, show_default=True, help="Seconds to measure."
)
@click.option(
    "--settle", type=click.FloatRange(0, 3_600), default=30.0, show_default=True, help="Seconds to wait first."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def idle(seconds: float, settle: float, as_json: bool) -> None:
    """Measure a separate idle console after one visit of its home page."""
    with whole.new_folder() as folder, whole.console(folder) as console:
        console.visit()
        time.sleep(settle)
        before, began = console.costs(), time.perf_counter()
        time.sleep(seconds)
        after, elapsed = console.costs(), time.perf_counter() - began
    found = _compare(before, after, elapsed)
    if as_json:
        click.echo(json.dumps(found))
        return
    click.echo(f"{found['seconds']:g} s at rest; the memory is the proportional share (PSS)")
    rows = [(row["name"], f"{row['cpu']:.2%}", f"{row['pss_mib']:.0f} MiB", row["wakes"]) for row in found["processes"]]
    wakes = sum(row["wakes"] for row in found["processes"])
    rows.append(("all", f"{found['cpu']:.2%}", f"{found['pss_mib']:.0f} MiB", round(wakes, 1)))
    output.table(("PROCESS", "CPU", "MEMORY", "WAKE-UPS PER SECOND"), rows, "")
    click.echo(f"CPU of one core; {os.cpu_count()} cores, the load is {os.getloadavg()[0]:.1f} now.")


def _compare(before: dict[int, Cost], after: dict[int, Cost], seconds: float) -> dict[str, Any]:
    """The usage between two measurements. CPU of processes that ended in between counts with their parents."""
    rows: list[dict[str, Any]] = [
        {
            "name": cost.name,
            "cpu": round((cost.cpu_seconds - (then.cpu_seconds if then else 0.0)) / seconds, 5),
            "pss_mib": round(cost.pss_mib, 1),
            "wakes": round((cost.switches - (then.switches if then else 0)) / seconds, 1),
        }
        for cost, then in ((cost, before.get(pid)) for pid, cost in after.items())
    ]
    total = sum(cost.cpu_seconds for cost in after.values()) - sum(cost.cpu_seconds for cost in before.values())
    pss = sum(cost.pss_mib for cost in after.values())
    rows.sort(key=lambda row: -row["pss_mib"])
    return {"seconds": round(seconds), "cpu": round(total / seconds, 5), "pss_mib": round(pss, 1), "processes": rows}
