"""Images as data: read, decoded to one shape, stored, normalised and varied."""
