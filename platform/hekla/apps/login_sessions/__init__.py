"""Login sessions: the browsers in which people are signed in, and how to sign them out."""
