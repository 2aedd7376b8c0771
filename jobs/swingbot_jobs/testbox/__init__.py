"""Testboxes: what the files in `workers/testboxes/` may say, one module for each driver that has keys of its own."""
