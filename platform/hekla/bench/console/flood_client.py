"""Simulates one person's program that sends requests at a fixed rate, however slow the answers are.

`python -m hekla.bench.console.flood_client PLAN`: the plan is a JSON object with `origin`, `cookie`, `paths` (requested
in turn), `per_second` and `seconds`. It prints the number of answers by status as a JSON object; `error`: no answer.
"""

import asyncio
import json
import sys
from collections import Counter
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx2

_CONNECTIONS = 200
_PATIENCE_SECONDS = 60.0


async def flood(plan: dict[str, Any]) -> Counter[str]:
    """Send all requests of the plan. Returns the number of answers by status."""
    statuses: Counter[str] = Counter()
    limits = httpx2.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS)
    headers = {"Cookie": plan["cookie"], "User-Agent": "flood"}
    async with httpx2.AsyncClient(
        base_url=plan["origin"], headers=headers, limits=limits, timeout=_PATIENCE_SECONDS
    ) as client:

        async def send(path: str) -> None:
            try:
                answer = await client.get(path)
                statuses[str(answer.status_code)] += 1
            except httpx2.HTTPError:
                statuses["error"] += 1

        loop, paths = asyncio.get_running_loop(), cycle(plan["paths"])
        began = loop.time()
        async with asyncio.TaskGroup() as sending:
            for number in range(round(plan["per_second"] * plan["seconds"])):
                await asyncio.sleep(began + number / plan["per_second"] - loop.time())
                sending.create_task(send(next(paths)))
    return statuses


def main() -> None:
    """Run the plan."""
    print(json.dumps(asyncio.run(flood(json.loads(Path(sys.argv[1]).read_text())))))


if __name__ == "__main__":
    main()
