"""Benchmarks: the paper's tables and figures on its data sets, and what newfound's stages cost next to a baseline."""
