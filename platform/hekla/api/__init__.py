"""REST: the same verbs and questions as the pages have, for programs. See `v1` for the addresses."""
