"""Where a ledger's lines are kept: SQLite or PostgreSQL, and the way from one layout to the next."""
