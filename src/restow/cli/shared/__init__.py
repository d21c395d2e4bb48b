"""Code that several commands share: connections, flags, files, tables, drawing, errors."""
