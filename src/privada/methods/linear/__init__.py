"""Linear: the noisy descent of a linear score, which several methods ask for, each under a name of its own.

It is no method by itself: it has no card and no study. The question and its proof are in
`privada.methods.linear.questions.descent`, the learner is in `privada.methods.linear.learner`.
"""
