"""Training of the vision tower: pictures through the tower and the frozen language model to the answer."""
