/** To be raised with every change of {@link SCHEMA}, which then needs a way from the one before. */
export const SCHEMA_VERSION = 1;

/** Times are Unix milliseconds; `expires` is null for what never does. `batch` is the batch's seq. */
export const SCHEMA = `
CREATE TABLE files (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  purpose TEXT NOT NULL,
  name TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER
) STRICT;
CREATE TABLE batches (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  owner TEXT NOT NULL,
  api TEXT NOT NULL,
  status TEXT NOT NULL,
  created INTEGER NOT NULL,
  details TEXT NOT NULL,
  total INTEGER NOT NULL DEFAULT 0,
  succeeded INTEGER NOT NULL DEFAULT 0,
  errored INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0,
  expired INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  cached_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  reasoning_tokens INTEGER NOT NULL DEFAULT 0,
  answer_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE lines (
  batch INTEGER NOT NULL,
  number INTEGER NOT NULL,
  custom_id TEXT NOT NULL,
  model TEXT NOT NULL,
  place TEXT NOT NULL,
  start INTEGER NOT NULL,
  length INTEGER NOT NULL,
  outcome TEXT,
  PRIMARY KEY (batch, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX lines_by_custom_id ON lines (batch, custom_id);
CREATE INDEX waiting_lines ON lines (batch, model, place, number) WHERE outcome IS NULL;
CREATE TABLE answers (
  batch INTEGER NOT NULL,
  number INTEGER NOT NULL,
  status INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (batch, number)
) STRICT;
`;
