"""Decisions: values in, values out. No clock, files, sockets, randomness or logging.

model       what swingbot remembers, as frozen records
stats       is one kernel different from another: comparisons and evidence
bisect      which commit did it: the belief, and the next kernel worth measuring
incident    one culprit with all that it changed, and what people said of it
plan        what to build and boot: changes, orders, costs, noise, suspected swings, testboxes
proof       gates between a culprit and a mail, and what explains the change
report      the text of mails and printed comparisons
moderation  whether a mail may leave, and to whom
mail        what a mail is, whatever it says
reproduce   the kit with which a reader measures the change again
raw         raw results as files
access      tokens, roles, limits, uploads, URLs
keep        backups, retention, and the state of the machine
text        wording that all texts share
thresholds  the numbers that decide what is believed and reported, with their consequences

Imports go one way; the order is a contract in pyproject.toml.
"""
