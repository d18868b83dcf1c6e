"""The couriers: memory, a folder, a bucket of an object store, a NATS server."""
