"""`hekla bench`: how fast Hekla is on this machine."""
