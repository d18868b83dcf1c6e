"""Sign-in by OpenID Connect: an identity provider says who a person is, the owner's file what they may do.

`settings` reads ``console.toml``, `provider` talks to the declared issuer and checks its tokens, `pending`
remembers the sign-ins that were begun, and `pages` are the two addresses that a browser visits.
"""
