"""Manifests in and out: what people already have, read into a JobSpec, and a JobSpec written as what others read."""
