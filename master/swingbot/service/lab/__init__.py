"""Testboxes: what each one does, who may use it, and anchors that show whether it still measures what it measured."""
