"""What all steps share: the bar, sessions, models, inputs, and the page's look."""
