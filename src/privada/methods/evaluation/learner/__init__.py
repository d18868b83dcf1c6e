"""Public: what is computed from the releases."""
