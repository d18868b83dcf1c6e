"""Clustering with a private source: choose k target points beside centres that may not be seen."""
