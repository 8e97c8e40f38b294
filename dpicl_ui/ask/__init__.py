"""The place beside the steps: private answers."""
