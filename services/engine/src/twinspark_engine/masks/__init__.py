"""Token masks of constrained requests, as a rank gets them from its grammar service: one stream for each request."""
