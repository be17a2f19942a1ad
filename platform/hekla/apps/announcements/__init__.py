"""Announcements: what operators tell people, as a banner on every page."""
