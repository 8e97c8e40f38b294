"""Lies: errors planted in the program one at a time, each of which a test that names the property has to find."""
