"""Mails as such, whatever they say.

message     subject, body and thread of a mail; how much fits into one
encoding    its bytes (RFC 5322) and its Message-ID
addresses   what an address is, and who asked for no mail
recipients  to whom a report goes: author, maintainers and lists
trailers    whom a commit names in its message
posting     the mail that a commit was posted as
"""
