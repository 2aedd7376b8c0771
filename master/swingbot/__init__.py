import os

# Our matrices are small, so BLAS threads only wait for each other: on two busy cores a bisection
# step took four times as long.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
