"""What a private file becomes."""
