"""Small helpers that know nothing of Hekla: clock, text, diff, caching, encryption."""
