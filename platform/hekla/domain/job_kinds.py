"""Constants of job specs that models need too: the specification itself, with its plugins, takes a while to import."""

SESSION = "debugging"
"""The kind of debugging sessions."""
EXTERNAL = "adopted"
"""The kind of jobs of external pods, which Hekla only schedules."""
MAX_PRIORITY = 1_000_000_000
