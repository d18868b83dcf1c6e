"""A NATS server of your own: certificates, users with narrow permissions, and running it.

For trials on one machine and for consortia, with one server or a cluster of them (the how-to "Run a broker").
"""
