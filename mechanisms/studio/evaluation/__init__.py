"""What demonstrations are worth."""
