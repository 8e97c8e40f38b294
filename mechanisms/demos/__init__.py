"""The results of a run that may be shared: a demo set, its certificate and its signature."""
