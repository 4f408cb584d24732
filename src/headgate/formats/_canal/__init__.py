"""What the relatives of Canal share."""
