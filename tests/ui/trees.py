"""What stands in a tree of the page."""

from __future__ import annotations

from dpicl_ui.frame.tree import Tree


def text_of(tree: Tree | list[Tree]) -> str:
    """All its text."""
    if isinstance(tree, str):
        return tree
    children = tree if isinstance(tree, list) else tree["children"]
    return " ".join(text_of(child) for child in children)


def tags(tree: Tree | list[Tree]) -> set[str]:
    """The tags of all its elements."""
    if isinstance(tree, str):
        return set()
    if isinstance(tree, list):
        return set().union(*map(tags, tree))
    return {tree["tag"]}.union(*map(tags, tree["children"]))
