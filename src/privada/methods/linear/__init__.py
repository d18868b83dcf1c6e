"""Linear: noisy sums and descents of linear models, which several rooms ask for under names of their own.

Not a method by itself: no card, no study. A room makes a question of its own kind out of `LinearDescent`.
"""
