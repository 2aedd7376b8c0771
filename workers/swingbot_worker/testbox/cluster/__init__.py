"""Driver `cluster`: two testboxes with a wire between them, booted into the same kernel through
their own drivers.
"""
