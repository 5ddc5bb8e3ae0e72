"""Benchmarks: the protocol's splits, and what newfound's stages cost next to a named baseline."""
