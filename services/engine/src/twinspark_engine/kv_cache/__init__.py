"""Books which cache space a request holds. No torch: the memory itself belongs to the model's state."""
