"""Decisions: values in, values out. No clock, files, sockets, randomness or logging.

model       stored entities as frozen records
stats       comparisons of kernels and evidence for a change
bisect      the search for the culprit: belief, and the next kernel to measure
incident    one culprit with all of its swings and the decisions about it
plan        what to build and boot: changes, orders, costs, noise, suspected swings, testboxes
proof       gates between a culprit and a mail, and clues that explain the change
report      texts of mails and printed comparisons
moderation  whether a mail may leave, and its recipients
mail        format of mails, independent of their content
reproduce   the kit that lets a reader repeat the measurement
raw         raw results as files
access      tokens, roles, limits, uploads, URLs
keep        backups, retention, and the state of the machine
text        formatting shared by all texts
thresholds  the numbers that decide what is believed and reported, with their consequences

Imports go one way; the order is a contract in pyproject.toml.
"""
