"""The place beside the steps: what data sets have spent."""
