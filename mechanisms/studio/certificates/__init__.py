"""Checks of a certificate: the run built anew from what it states, and the signature of its file."""
