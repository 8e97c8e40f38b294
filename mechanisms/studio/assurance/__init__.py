"""What can be proved of claims and measured of the engine by running them."""
