"""The writing half of each format; `common` holds what they share."""
