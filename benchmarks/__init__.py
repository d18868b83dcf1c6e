"""Speed and memory beside peers, each pair measured in one run: ``python -m benchmarks.NAME``."""
