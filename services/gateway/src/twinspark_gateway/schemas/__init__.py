"""What requests may hold, and the shapes of replies."""
