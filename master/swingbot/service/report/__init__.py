"""Mails: draft, moderate, address, and send at most once; and pack the kit that reproduces a
report.
"""
