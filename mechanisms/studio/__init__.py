"""Use cases: what the app and the command line do, as functions and generators of events."""
