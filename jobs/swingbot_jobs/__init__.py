"""The job language: requests to a testbox and readers of its results.

Pure; shared by master and workers.

language     job files, from text to unit jobs
testbox      testbox files, and how each driver is described
contract     orders, outcomes, unit jobs, facts, kernel names and keys, trust
reading      results, from archives to samples
kernel_diff  two kernel builds compared
"""
