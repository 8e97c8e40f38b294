"""The measurements quoted in the documents; each is a separate program, run from the project's root."""
