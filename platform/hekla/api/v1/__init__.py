"""Version 1. Fields may be added to answers; nothing is taken away or given another meaning."""
