"""Whom the server serves, who signs in, and what is refused at the door."""
