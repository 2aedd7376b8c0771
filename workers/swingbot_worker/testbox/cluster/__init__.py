"""Driver `cluster`: boots the same kernel on two testboxes that are connected by a wire, each
through its own driver.
"""
