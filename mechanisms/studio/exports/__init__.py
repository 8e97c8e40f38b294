"""Released demo sets in the shapes of other tools; a file a format, nothing is read but the demo-set file."""
