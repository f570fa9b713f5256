"""Row-invariant ops of GLM-5.3-Flash: one folder an op, a reference beside each kernel.

Importing the package has MKL sum in an order that does not follow the number of threads, for the whole process: MKL
reads the variable at its first product (docs/decisions/007-mkl-sums-in-one-order.md).
"""

import os

from twinspark_kernels.mkl_mode import VARIABLE, choose_mode

if mode := choose_mode():
    os.environ[VARIABLE] = mode  # noqa: TID251 -- no setting of ours, and MKL has no other way in
