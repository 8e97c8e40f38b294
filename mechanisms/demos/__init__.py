"""The results of a run that may be shared: a demo set, its certificate, its findings and its signature."""
