"""Priority classes: numbers with a name, and who may use them."""
