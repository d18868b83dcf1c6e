"""An owner checks its own rows: what does not fit, and what was found right before."""
