"""`swingbot bisect run`: bisect any benchmark of any project, without service or database.

All state is a git range and a journal.
"""
