"""The job file: its model, its reader, URIs."""
