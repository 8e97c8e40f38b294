"""What the steps stand in: bar, sessions, look, guards."""
