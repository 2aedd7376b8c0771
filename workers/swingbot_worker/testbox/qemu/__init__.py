"""Driver `qemu`: a virtual testbox on this host."""
