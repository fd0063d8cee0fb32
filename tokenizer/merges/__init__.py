"""The order in which pieces are joined: counts of pieces and neighbors, and the gain of a join."""
