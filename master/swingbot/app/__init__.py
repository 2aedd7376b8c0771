import os

# Our matrices are small: threads of a BLAS only wait for each other (a step of a bisection took four times as long on two busy cores).
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
