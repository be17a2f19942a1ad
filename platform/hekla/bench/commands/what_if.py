"""`hekla bench whatif`: the response time of what-if previews."""

import time
from typing import Any

import click

from hekla.bench.commands import latencies
from hekla.cli.client import Client, client_of
from hekla.cli.servers import Choice

_LABELS = {
    "small": "one pod of one CPU",
    "large": "a gang, and what would let it start",
    "eta": "the same, and when it will start",
}


@click.command("whatif")
@latencies.options
@click.option("--pods", type=click.IntRange(1, 10_000), default=64, show_default=True, help="Pods of the large gang.")
@click.option("--cpu", default="8", show_default=True, help="CPU of each pod of the gang.")
@click.pass_obj
def whatif(
    choice: Choice, jobs: int, warm_up: int, queue: str, tenant: str | None, pods: int, cpu: str, as_json: bool
) -> None:
    """Measure previews of a small and a large job on the console. Nothing is submitted."""
    client = client_of(choice)
    small, large = _draft(queue, 1, "1"), _draft(queue, pods, cpu)
    questions = [(small, False), (large, False), (large, True)]
    runs = [
        [_ask(client, draft, tenant, with_eta=with_eta) for draft, with_eta in questions] for _ in range(warm_up + jobs)
    ][warm_up:]
    facts = {"server": client.server.url, "queue": queue, "questions": jobs, "pods": pods, "cpu": cpu}
    head = f"{jobs} questions of each kind about queue {queue}, one after another, milliseconds"
    latencies.tell(head, _LABELS, runs, facts, as_json=as_json)


def _draft(queue: str, pods: int, cpu: str) -> dict[str, Any]:
    task = {"name": "worker", "replicas": pods, "command": ["true"], "resources": {"cpu": cpu}}
    return {"name": "draft", "queue": queue, "tasks": [task]}


def _ask(client: Client, draft: dict[str, Any], tenant: str | None, *, with_eta: bool) -> float:
    """Milliseconds from request to response."""
    began = time.perf_counter()
    client.post("what-if", draft, tenant=tenant, eta="1" if with_eta else "0")
    return (time.perf_counter() - began) * 1000
