"""Models: how fitted estimators leave, as one safe file or as ONNX, and predict elsewhere.

Not a method by itself: no card, no study, no question.
"""
