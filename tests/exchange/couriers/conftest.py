"""Couriers to a NATS server of the test's own."""

import pytest


@pytest.fixture
def connect():
    """A function that opens a courier to a server."""
    from privada.exchange.couriers.connection import Connection
    from privada.exchange.couriers.nats import NatsCourier

    opened = []

    def open_one(server, *, patience=5.0, exchange="trial"):
        opened.append(NatsCourier(Connection([server.url], patience=patience), exchange=exchange))
        return opened[-1]

    yield open_one
    for courier in opened:
        courier.close()


@pytest.fixture
def courier(own_nats_server, connect):
    made = connect(own_nats_server)
    made.create_exchange()
    return made
