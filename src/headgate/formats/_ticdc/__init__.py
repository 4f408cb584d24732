"""What the formats of TiCDC share."""
