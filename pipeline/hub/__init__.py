"""Models on a hub: pushed whole, and pulled verified."""
