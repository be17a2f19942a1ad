"""Price lists: what an hour of a resource costs, and since when."""
