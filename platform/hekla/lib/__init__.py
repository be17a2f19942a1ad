"""Small things that could belong to any project: clocks, text, paging."""
