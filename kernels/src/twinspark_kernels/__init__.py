"""Row-invariant ops of GLM-5.3-Flash: one folder an op, a reference beside each kernel."""
