"""Newer methods than the product's, each in one file, built to be measured beside it."""
