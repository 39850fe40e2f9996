"""What the public functions return."""
