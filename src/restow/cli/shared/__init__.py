"""What several commands use: connections, flags, files, tables, drawing, errors."""
