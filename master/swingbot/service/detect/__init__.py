"""Swings: screen tips, prove suspicions, recognise culprits, check anchors, and measure noise."""
