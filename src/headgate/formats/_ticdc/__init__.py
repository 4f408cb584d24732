"""Code shared by the formats that TiCDC writes."""
