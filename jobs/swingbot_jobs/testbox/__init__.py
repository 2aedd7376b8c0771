"""Testboxes: the format of the files in `workers/testboxes/`, with one module for each driver that
has its own keys.
"""
