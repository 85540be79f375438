"""What experiments compute, without running them."""
