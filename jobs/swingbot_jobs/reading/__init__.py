"""Results: from the output of programs to samples, and the readers that the parsers of
`jobs/programs/` share.
"""
