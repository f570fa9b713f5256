"""The group of ranks: agreement before the first exchange, the exchange itself, plans from rank 0 to the others."""
