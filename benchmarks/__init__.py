import swingbot  # noqa: F401 -- before numpy, whose BLAS it keeps to one thread
