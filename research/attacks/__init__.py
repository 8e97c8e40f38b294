"""The privacy attacks of the papers, on public data that plays the private file."""
