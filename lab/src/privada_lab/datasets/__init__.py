"""Generators of the papers' synthetic sets, and readers of local copies of the real ones."""
