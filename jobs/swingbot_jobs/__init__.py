"""The job language: what may be asked of a testbox, and how to read the answer. Pure; shared by master and workers."""
