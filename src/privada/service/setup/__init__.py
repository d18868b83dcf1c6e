"""From a file or a table to a complete ``owner.toml``: the same questions at a terminal and on a page."""
