"""Tables of kernels: request, estimate, judge, cancel."""
