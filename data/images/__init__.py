"""Images as data: read, decoded to one shape, stored, normalized and varied."""
