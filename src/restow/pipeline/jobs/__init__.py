"""One file per job: a pure function from tables to a table, and the schema of its result."""
