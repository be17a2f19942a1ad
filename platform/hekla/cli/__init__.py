"""`hekla`: a client of the REST API, and a few commands that need no server."""
