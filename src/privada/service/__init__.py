"""An owner's running process: it dials out to an exchange and answers what is asked there."""
