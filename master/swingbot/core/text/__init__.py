"""Formatting of text for humans: lines (`plain`) and numbers (`numbers`)."""
