"""How questions and releases travel between institutions."""
