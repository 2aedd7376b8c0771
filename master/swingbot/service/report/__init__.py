"""Mails: drafted, moderated, addressed, sent at most once; and the kit that reproduces a report."""
