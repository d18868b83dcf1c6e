"""Public: what can be asked, and what it costs."""
