"""The private side of an estimator in one process: who holds the rows, and what they have lost so far."""
