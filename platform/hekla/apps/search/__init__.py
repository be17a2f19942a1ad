"""Finding anything from one field: what people made, where it runs, who they are, and the help."""
