"""Commands of an owner."""
