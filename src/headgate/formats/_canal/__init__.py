"""Code shared by the formats related to Canal."""
