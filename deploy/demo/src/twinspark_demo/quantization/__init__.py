"""EXL3 encoder: finds the trellis states, signs and scales of given expert matrices."""
