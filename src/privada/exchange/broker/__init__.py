"""A NATS server of your own: certificates, users with narrow permissions, and running it.

For trials on one machine and for small consortia; larger ones take the same users and permissions to a
cluster (the how-to "Run a broker").
"""
