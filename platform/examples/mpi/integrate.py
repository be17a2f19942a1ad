"""The number pi, as the area below 4 / (1 + x²) from 0 to 1: every rank adds up its part, and all agree on the sum.

Each step halves the width of the strips, until the sum no longer changes. mpirun in the master starts the ranks; each
runs in a worker, and reads its own file there, since all pods of a job get the same files.
"""

import math
import os
import sys

from mpi4py import MPI

FIRST_STRIPS = 4
MOST_STRIPS = 2**20
GOOD_ENOUGH = 1e-11


def part(rank: int, size: int, strips: int) -> float:
    """The area of every `size`-th strip, measured at its middle."""
    middles = ((number + 0.5) / strips for number in range(rank, strips, size))
    return math.fsum(4 / (1 + x * x) for x in middles) / strips


def integrate(world: MPI.Comm) -> float:
    strips, before, pi = FIRST_STRIPS, 0.0, 3.0
    while abs(pi - before) > GOOD_ENOUGH and strips <= MOST_STRIPS:
        before, pi = pi, world.allreduce(part(world.rank, world.size, strips), op=MPI.SUM)
        report(world, strips, pi)
        strips *= 2
    return pi


def introduce(world: MPI.Comm) -> None:
    """Rank 0 says where everyone is; when all print for themselves, their lines may run into one another."""
    places = world.gather(os.environ["HEKLA_POD_ADDRESS"]) or ()
    for rank, place in enumerate(places):
        print(f"rank {rank} of {world.size} is at {place}", flush=True)


def report(world: MPI.Comm, strips: int, pi: float) -> None:
    if world.rank == 0:
        print(f"{strips} strips: {pi:.12f}", flush=True)
        print(f"::metric step={strips} error={abs(pi - math.pi):.3e}", flush=True)


if __name__ == "__main__":
    everyone = MPI.COMM_WORLD
    introduce(everyone)
    found = integrate(everyone)
    if abs(found - math.pi) > 1e-9:  # noqa: PLR2004
        sys.exit(f"rank {everyone.rank} found {found}, which is not pi")
