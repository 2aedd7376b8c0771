"""Driver `ssh`: a bare-metal testbox that idles in its own system, driven over SSH, console and
power switch.
"""
