"""The form of a cluster's configuration, made from the model that its backend declares: any backend gets fields."""
