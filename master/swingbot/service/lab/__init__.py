"""Testboxes: their state, who may use them, and anchors that show whether they still measure the
same.
"""
