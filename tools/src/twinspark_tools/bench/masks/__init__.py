"""The grammar service alone, with a vocabulary of GLM's size: start, compiling, masks, memory."""
