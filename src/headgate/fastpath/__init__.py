"""Compiled conversion of messages that look alike."""
