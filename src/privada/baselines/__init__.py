"""What people would use instead, private and not, with the same estimator face."""
