"""Notifications about jobs, by people's choice: in the page, by mail, by webhook."""
