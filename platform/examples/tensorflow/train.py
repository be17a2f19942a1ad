"""A linear model by several workers of TensorFlow: each sees a part of the data, all take the same steps.

TF_CONFIG says who the workers are. After each step they agree on the mean of their gradients, so all hold the same
weights. The data are made here, from weights that are known: the workers fail when they do not find them.
"""

import json
import os
import sys

import numpy as np
import tensorflow as tf

SEED = 7
SAMPLES = 2048
BATCH = 64
STEPS = 120
REPORT_EVERY = 20
RATE = 0.1
WEIGHTS = np.array([[1.0], [2.0], [-1.0], [0.5]], dtype=np.float32)
CLOSE = 0.01


def samples() -> tuple[np.ndarray, np.ndarray]:
    """The same in every worker."""
    inputs = np.random.default_rng(SEED).normal(size=(SAMPLES, len(WEIGHTS))).astype(np.float32)
    return inputs, inputs @ WEIGHTS


def part(context: tf.distribute.InputContext) -> tf.data.Dataset:
    """This worker's share of them."""
    everything = tf.data.Dataset.from_tensor_slices(samples())
    own = everything.shard(context.num_input_pipelines, context.input_pipeline_id)
    return own.repeat().batch(BATCH)


class Model:
    """The weights, and how they are found."""

    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        self._strategy = strategy
        self._batches = iter(strategy.distribute_datasets_from_function(part))
        with strategy.scope():
            self.weights = tf.Variable(tf.zeros(WEIGHTS.shape))

    @tf.function
    def step(self) -> tf.Tensor:
        """One step of all workers together; the mean loss."""
        losses = self._strategy.run(self._own_step, args=(next(self._batches),))
        return self._strategy.reduce("MEAN", losses, axis=None)

    def _own_step(self, batch: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        inputs, wanted = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((inputs @ self.weights - wanted) ** 2)
        own = tape.gradient(loss, self.weights)
        mean = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, own)
        self.weights.assign_sub(RATE * mean)
        return loss


def main() -> int:
    """0 when the weights were found."""
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    print(f"{task['type']} {task['index']} of {strategy.num_replicas_in_sync}", flush=True)
    model = Model(strategy)
    for number in range(1, STEPS + 1):
        loss = float(model.step())
        if number % REPORT_EVERY == 0:
            print(f"step {number} loss {loss:.6f}", flush=True)
    found = model.weights.numpy()
    print("weights", *(f"{weight:.4f}" for weight in found.ravel()), flush=True)
    return int(not np.allclose(found, WEIGHTS, atol=CLOSE))


if __name__ == "__main__":
    sys.exit(main())
