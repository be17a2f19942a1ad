"""People who come from an organisation's own directory, by OpenID Connect. See decision 0021."""
