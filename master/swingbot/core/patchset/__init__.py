"""A patch series as people send it: mailboxes, quilt directories, single patches; read into one ordered series.

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
