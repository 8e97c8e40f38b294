"""Recipes: runs of several stages, in which private units judge public alternatives."""
