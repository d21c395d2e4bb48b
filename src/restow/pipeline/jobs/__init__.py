"""One file per job: a pure function from tables to a table, with the schema of what it makes beside it."""
