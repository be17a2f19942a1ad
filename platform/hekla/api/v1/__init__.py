"""Version 1. Later releases may add fields to responses, but never remove fields or change their meaning."""
