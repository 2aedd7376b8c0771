"""Read a patch series as sent: mailboxes, quilt directories, single patches.

model        patches of a series, omitted mails, and limits
mailbox      mails in a file, and their headers
mime         decoded text parts of a mail
subject      tags of a subject
patch_mail   contents of a mail: author, subject, commit message, diff
diff         the unified diff in a text
posting      the patches of a posting among mails, and their order
quilt        the `series` file of a quilt directory
read         from files to a series
"""
