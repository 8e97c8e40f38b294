"""Reproductions of papers and the programs behind the tables of docs/; they run from the project's root and are not in
the wheel.

It imports the product, and the product never imports it.
"""
