"""Private files: reading them, their columns, units, sizes, and earlier disclosures."""
