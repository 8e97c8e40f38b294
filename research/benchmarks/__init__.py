"""Measurements that the documents quote; each is run by itself, from the root of the project."""
