"""What we tell people about a finding. Facts in, text out; `swingbot.core.mail` knows what a mail is.

mails/    the text of each kind of mail: `first` (a new culprit), `followup`, `alert` (the lab), `digest`
parts/    what several texts contain: the tables, and the lines about proof
formats/  a comparison printed to be pasted elsewhere: `swingbot show --format`
facts     what the first mail says, before it has words, and its JSON
"""
