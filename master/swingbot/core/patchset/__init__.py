"""Read a patch series as it is sent: mailboxes, quilt directories, single patches.

model      patches of a series, what was left out, and the limits
mailbox    mails in a file, and their headers
mime       the text parts of a mail, decoded
subject    the tags of a subject
letter     what a mail says: author, subject, commit message, diff
diff       the unified diff in a text, and nothing else
order      the order of patches by their numbers
quilt      the `series` file of a quilt directory
read       files in, series out
"""
