"""Handwritten digits, learned by one parameter server and some workers over plain sockets.

The platform tells every process who is who: TF_CONFIG holds the addresses of all of them and this one's role. The
parameter server owns the weights. In each step it sends them to every worker, gets a gradient from each (of the
worker's own part of the scans), and goes a step down their mean: synchronous data-parallel training, repeatable.
"""

import csv
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_digits

SEED = 7
SHAPES = [(64, 64), (64,), (64, 10), (10,)]
STEPS = 6000
REPORT_EVERY = 200
RATE = 0.5
WANTED_ACCURACY = 0.95
PATIENCE_SECONDS = 60.0

Arrays = list[np.ndarray]


# Messages: a count of arrays, then for each its number of bytes and its numbers (float32). No pickle.


def send(peer: socket.socket, arrays: Arrays) -> None:
    parts = [struct.pack("!I", len(arrays))]
    for array in arrays:
        data = np.ascontiguousarray(array, dtype=np.float32).tobytes()
        parts += [struct.pack("!I", len(data)), data]
    peer.sendall(b"".join(parts))


def receive(peer: socket.socket) -> Arrays:
    (count,) = struct.unpack("!I", read(peer, 4))
    arrays = []
    for _ in range(count):
        (size,) = struct.unpack("!I", read(peer, 4))
        arrays.append(np.frombuffer(read(peer, size), dtype=np.float32))
    return arrays


def read(peer: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = peer.recv(size - len(data))
        if not piece:
            raise ConnectionError("the other side has ended")
        data += piece
    return bytes(data)


# The network: 64 pixels, 64 hidden units, 10 digits.


def first_weights() -> Arrays:
    random = np.random.default_rng(SEED)
    return [random.normal(0, 0.1, shape).astype(np.float32) for shape in SHAPES]


def shaped(flat: Arrays) -> Arrays:
    return [array.reshape(shape) for array, shape in zip(flat, SHAPES, strict=True)]


def predict(weights: Arrays, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hidden activity and the probability of each digit."""
    w1, b1, w2, b2 = weights
    hidden = np.maximum(images @ w1 + b1, 0)
    scores = hidden @ w2 + b2
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def gradient(weights: Arrays, images: np.ndarray, digits: np.ndarray) -> tuple[float, Arrays]:
    """Mean loss on a batch, and where it grows."""
    hidden, chances = predict(weights, images)
    rows = np.arange(len(digits))
    loss = float(-np.log(chances[rows, digits] + 1e-9).mean())
    error = chances.copy()
    error[rows, digits] -= 1
    error /= len(digits)
    back = (error @ weights[2].T) * (hidden > 0)
    return loss, [images.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]


# The scans: four fifths to learn from, divided among the workers; one fifth held out.


def scans() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(digits))
    images, digits = (images[order] / 16).astype(np.float32), digits[order]
    held_out = len(digits) // 5
    return images[held_out:], digits[held_out:], images[:held_out], digits[:held_out]


def batches(
    images: np.ndarray, digits: np.ndarray, seed: int, size: int = 32
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(seed)
    while True:
        chosen = random.integers(0, len(digits), size)
        yield images[chosen], digits[chosen]


# The two roles.


def serve(address: str, workers: int) -> None:
    """The parameter server: gather the workers, train, judge, keep the model."""
    weights, losses = first_weights(), []
    _, _, images, digits = scans()
    peers = gather(address, workers)
    for step in range(1, STEPS + 1):
        for peer in peers:
            send(peer, weights)
        answers = [receive(peer) for peer in peers]
        losses.append(float(np.mean([answer[0] for answer in answers])))
        rate = RATE * (1 - step / (STEPS + 1))
        slopes = shaped([np.mean(parts, axis=0) for parts in zip(*(answer[1:] for answer in answers), strict=True)])
        weights = [weight - rate * slope for weight, slope in zip(weights, slopes, strict=True)]
        if step % REPORT_EVERY == 0:
            report(step, float(np.mean(losses[-REPORT_EVERY:])), accuracy(weights, images, digits))
    for peer in peers:
        send(peer, [])
    finish(weights, losses, accuracy(weights, images, digits))


def gather(address: str, workers: int) -> list[socket.socket]:
    host, port = address.rsplit(":", 1)
    with socket.create_server((host, int(port)), backlog=workers) as server:
        server.settimeout(PATIENCE_SECONDS)
        print(f"parameter server at {address}, waiting for {workers} workers", flush=True)
        peers = []
        for number in range(1, workers + 1):
            peer, (host, _) = server.accept()
            peer.settimeout(PATIENCE_SECONDS)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peers.append(peer)
            print(f"worker {number} of {workers} has come from {host}", flush=True)
    return peers


def accuracy(weights: Arrays, images: np.ndarray, digits: np.ndarray) -> float:
    return float((predict(weights, images)[1].argmax(axis=1) == digits).mean())


def report(step: int, loss: float, held_out: float) -> None:
    print(f"step {step} loss {loss:.4f} held-out accuracy {held_out:.4f}", flush=True)
    print(f"::metric step={step} loss={loss:.5f} accuracy={held_out:.4f}", flush=True)


def finish(weights: Arrays, losses: list[float], held_out: float) -> None:
    np.savez("model.npz", *weights)
    with open("loss.csv", "w", newline="") as file:
        csv.writer(file).writerows([("step", "loss"), *enumerate(losses, start=1)])
    print(f"model.npz and loss.csv are written; held-out accuracy {held_out:.4f}", flush=True)
    if held_out < WANTED_ACCURACY:
        sys.exit(f"that is less than {WANTED_ACCURACY}")


def work(server: str, own: str, index: int, workers: int) -> None:
    """A worker: a gradient of its own part of the scans for every set of weights that comes."""
    images, digits, _, _ = scans()
    mine = batches(images[index::workers], digits[index::workers], SEED + 1 + index)
    peer = join(server, own)
    print(f"worker {index} learns from {len(digits[index::workers])} scans", flush=True)
    step = 0
    while flat := receive(peer):
        loss, slopes = gradient(shaped(flat), *next(mine))
        send(peer, [np.array([loss], dtype=np.float32), *slopes])
        step += 1
        if step % (5 * REPORT_EVERY) == 0:
            print(f"step {step} loss of this batch {loss:.4f}", flush=True)
    print(f"done after {step} steps", flush=True)


def join(server: str, own: str) -> socket.socket:
    """Connect from this pod's own address, as soon as the server listens."""
    host, port = server.rsplit(":", 1)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            peer = socket.create_connection((host, int(port)), timeout=5, source_address=(own.rsplit(":", 1)[0], 0))
        except OSError as error:
            if time.monotonic() > deadline:
                sys.exit(f"the parameter server at {server} does not answer: {error}")
            time.sleep(0.2)
        else:
            peer.settimeout(PATIENCE_SECONDS)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return peer


def main() -> None:
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, role, index = config["cluster"], config["task"]["type"], config["task"]["index"]
    try:
        if role == "ps":
            serve(cluster["ps"][0], len(cluster["worker"]))
        else:
            work(cluster["ps"][0], cluster["worker"][index], index, len(cluster["worker"]))
    except OSError as error:
        sys.exit(f"lost a peer: {error}")


if __name__ == "__main__":
    main()
