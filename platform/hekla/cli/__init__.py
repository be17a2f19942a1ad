"""`hekla`: a client of the console over REST, and a few measurements that need no console."""
