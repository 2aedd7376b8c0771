"""Swings: screen tips, prove suspicions, recognise known culprits, check anchors, and measure noise."""
