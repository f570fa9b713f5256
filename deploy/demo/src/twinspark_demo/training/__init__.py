"""Training of the demo model: model, losses, kernels, stages."""
