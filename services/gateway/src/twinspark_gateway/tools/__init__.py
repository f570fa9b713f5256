"""Tool calls: what is offered, the markup that the model writes, and the types of its values."""
