"""Who is told of which moments of which jobs, and how: in the page, by mail, by webhook."""
