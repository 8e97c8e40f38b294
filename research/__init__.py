"""What reproduces the papers and makes the tables of docs/: run from the root of the project, in no wheel.

It imports the product, and the product never imports it.
"""
