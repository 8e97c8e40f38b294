"""Private files: reading them, their columns, units, sizes, and what was disclosed of them before."""
