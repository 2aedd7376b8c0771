"""Texts of all mails. Each module turns facts into a subject and a body."""
