"""What a JSON schema asks for, and which of it masks enforce."""
