"""The privacy attacks of the papers, on public data that stands in for the private file."""
