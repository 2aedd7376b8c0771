"""Texts about findings: facts in, text out. `swingbot.core.mail` defines what a mail is.

mails/    text of each kind of mail: `first` (new culprit), `followup`, `alert` (lab), `digest`
parts/    building blocks shared by these texts: tables, and the lines about proof
formats/  a comparison in formats to paste elsewhere: `swingbot show --format`
facts     the content of the first mail as data, and its JSON
"""
