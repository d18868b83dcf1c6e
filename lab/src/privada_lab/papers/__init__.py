"""Mechanisms as the papers print them: *not private as claimed*, for reproduction and audit.

They run with seeded noise only, are stamped "not private as claimed", and can never be charged to a ledger.
One module per method; `privada.methods` has the sound mechanisms that stand in their place.
"""
