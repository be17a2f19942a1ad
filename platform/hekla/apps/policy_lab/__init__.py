"""Experiments of the policy lab: what people asked for, how far it is, and what came out."""
