"""Frozen values that everything above shares; nothing here decides, reads a clock or does IO."""
