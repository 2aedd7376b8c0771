"""Bisections: start, advance step by step, steer and explain them."""
