"""Exact samplers of integer noise; `privada.privacy.noise` alone uses them."""
