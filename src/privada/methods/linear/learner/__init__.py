"""Public: what is made of the releases."""
