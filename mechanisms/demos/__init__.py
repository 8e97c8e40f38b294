"""What leaves the house: a demo set, its certificate, its findings and its signature."""
