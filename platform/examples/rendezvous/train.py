"""Logistic regression by equals: every process has a part of the data, and all agree on each step by an all-reduce.

The platform says where to meet, in the variables that torch.distributed reads: MASTER_ADDR, MASTER_PORT, RANK and
WORLD_SIZE. Rank 0 listens there, adds up what the others send and gives everyone the sum, so all of them hold the same
weights at all times without ever sending the data. It tells benign from malignant tumours in the 569 samples of the
Wisconsin study that scikit-learn ships.
"""

import os
import socket
import struct
import sys
import time

import numpy as np
from sklearn.datasets import load_breast_cancer

SEED = 7
STEPS = 2000
REPORT_EVERY = 100
RATE = 0.3
DECAY = 1e-3
WANTED_ACCURACY = 0.95
PATIENCE_SECONDS = 60.0


class World:
    """The processes of this job. Numbers travel as float64 behind their size in bytes. No pickle."""

    def __init__(self, address: str, port: int, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.peers = self._gather(address, port) if rank == 0 else [self._join(address, port)]

    def all_reduce(self, numbers: np.ndarray) -> np.ndarray:
        """The sum over all processes; everyone calls this at the same point, with the same shape."""
        if self.rank:
            self._send(self.peers[0], numbers)
            return self._receive(self.peers[0], numbers.shape)
        total = sum((self._receive(peer, numbers.shape) for peer in self.peers), start=numbers)
        for peer in self.peers:
            self._send(peer, total)
        return total

    def _gather(self, address: str, port: int) -> list[socket.socket]:
        """Wait for the others; in the order of their ranks, so that sums come out the same in every run."""
        peers: dict[int, socket.socket] = {}
        with socket.create_server((address, port), backlog=self.size) as server:
            server.settimeout(PATIENCE_SECONDS)
            while len(peers) < self.size - 1:
                peer = self._tuned(server.accept()[0])
                peers[int(self._receive(peer, ()))] = peer
        return [peers[rank] for rank in sorted(peers)]

    def _join(self, address: str, port: int) -> socket.socket:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                peer = self._tuned(socket.create_connection((address, port), timeout=5))
            except OSError as error:
                if time.monotonic() > deadline:
                    sys.exit(f"nobody listens at {address}:{port}: {error}")
                time.sleep(0.2)
            else:
                self._send(peer, np.array(float(self.rank)))
                return peer

    def _tuned(self, peer: socket.socket) -> socket.socket:
        peer.settimeout(PATIENCE_SECONDS)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return peer

    def _send(self, peer: socket.socket, numbers: np.ndarray) -> None:
        data = numbers.astype(np.float64).tobytes()
        peer.sendall(struct.pack("!I", len(data)) + data)

    def _receive(self, peer: socket.socket, shape: tuple[int, ...]) -> np.ndarray:
        (size,) = struct.unpack("!I", self._read(peer, 4))
        if size != 8 * int(np.prod(shape)):
            raise ConnectionError(f"the other side sent {size} bytes, which are not numbers of the shape {shape}")
        return np.frombuffer(self._read(peer, size)).reshape(shape)

    def _read(self, peer: socket.socket, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = peer.recv(size - len(data))
            if not piece:
                raise ConnectionError("the other side has ended")
            data += piece
        return bytes(data)


def parts(world: World) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """This process' part of the samples to learn from, and of those held out (one fifth)."""
    samples, benign = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(benign))
    held_out, learned = np.split(order, [len(order) // 5])
    mine, judged = learned[world.rank :: world.size], held_out[world.rank :: world.size]
    return samples[mine], benign[mine], samples[judged], benign[judged]


def train(world: World) -> None:
    samples, benign, judged, truth = parts(world)
    count = float(world.all_reduce(np.array(float(len(samples)))))
    mean = world.all_reduce(samples.sum(axis=0)) / count
    deviation = np.sqrt(world.all_reduce(((samples - mean) ** 2).sum(axis=0)) / count)
    samples, judged = (samples - mean) / deviation, (judged - mean) / deviation
    print(f"rank {world.rank} of {world.size}: {len(samples)} of {count:.0f} samples are here", flush=True)
    weights = np.zeros(samples.shape[1] + 1)
    for step in range(1, STEPS + 1):
        chances = predict(weights, samples)
        error = chances - benign
        loss = -np.log(np.where(benign == 1, chances, 1 - chances) + 1e-12).sum()
        total = world.all_reduce(np.concatenate([samples.T @ error, [error.sum(), loss]])) / count
        weights -= RATE * (total[:-1] + DECAY * weights)
        if step % REPORT_EVERY == 0:
            right = predict(weights, judged).round() == truth
            hits, all_judged = world.all_reduce(np.array([right.sum(), len(truth)], dtype=float))
            report(world, step, total[-1], hits / all_judged)
    finish(world, weights, hits / all_judged)


def predict(weights: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """The chance that each sample is benign."""
    return 1 / (1 + np.exp(-(samples @ weights[:-1] + weights[-1])))


def report(world: World, step: int, loss: float, accuracy: float) -> None:
    if world.rank == 0:
        print(f"step {step} loss {loss:.4f} held-out accuracy {accuracy:.4f}", flush=True)
        print(f"::metric step={step} loss={loss:.5f} accuracy={accuracy:.4f}", flush=True)


def finish(world: World, weights: np.ndarray, accuracy: float) -> None:
    """Everyone holds the same weights; rank 0 keeps them."""
    if world.rank == 0:
        np.savez("model.npz", weights=weights)
        print(f"model.npz is written; held-out accuracy {accuracy:.4f}", flush=True)
    if accuracy < WANTED_ACCURACY:
        sys.exit(f"that is less than {WANTED_ACCURACY}")


if __name__ == "__main__":
    here = os.environ
    try:
        train(World(here["MASTER_ADDR"], int(here["MASTER_PORT"]), int(here["RANK"]), int(here["WORLD_SIZE"])))
    except OSError as error:
        sys.exit(f"lost a peer: {error}")
