"""Reports: what people get of the measures by mail, as pages and as files."""
