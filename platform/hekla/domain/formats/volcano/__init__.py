"""Volcano Jobs (`batch.volcano.sh/v1alpha1`): the manifest that people bring, and the one that they take along.

One YAML stream holds one Job, and where its pods need files, ConfigMaps that the Job mounts. A file that is mounted
into the container's working folder (or below it) becomes a file of the JobSpec. What a manifest cannot say otherwise
stands in annotations: on the Job `hekla.io/kind`, `hekla.io/description`, `hekla.io/priority`; on the Job or a pod
template `hekla.io/environment`. Annotations for plugins of the scheduler (`words.SCHEDULING`) stay as they are.
"""

from hekla.domain.formats.volcano.dump import dump
from hekla.domain.formats.volcano.load import Loaded, load

__all__ = ["Loaded", "dump", "load"]
