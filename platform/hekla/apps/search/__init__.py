"""Global search from one field: what people created, where it runs, people, and the help."""
