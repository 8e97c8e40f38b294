"""The user interface: panels, view state and charts. No maths, no model, nothing that decides about privacy."""
