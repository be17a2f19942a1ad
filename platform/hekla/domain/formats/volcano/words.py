"""The words that reading and writing share."""

API_VERSION = "batch.volcano.sh/v1alpha1"
SCHEDULERS = ("volcano", "hekla")

KIND = "hekla.io/kind"
DESCRIPTION = "hekla.io/description"
PRIORITY = "hekla.io/priority"
ENVIRONMENT = "hekla.io/environment"

FOLDER = "/workspace"
"""Where files are mounted in a manifest that we write."""
