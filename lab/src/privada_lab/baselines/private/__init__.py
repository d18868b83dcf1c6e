"""Private baselines, each priced and charged as our methods are."""
