"""Sign-in through an organisation's own directory, by OpenID Connect. See decision 0021."""
