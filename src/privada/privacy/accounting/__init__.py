"""How losses add up: events, rules, curves, filters, prices, and how a budget is split."""
