"""Public: what a release says of the source."""
