import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Database, SCHEMA, SCHEMA_VERSION } from "../../../src/batches/sqlite/database.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-database-"));
  file = path.join(folder, "batches.db");
});
afterEach(() => rmSync(folder, { recursive: true }));

test("a database of the same version is opened with its content", async () => {
  const made = await Database.open(file);
  made.run("INSERT INTO files (id, owner, purpose, name, bytes, created) VALUES ('f', '', '', '', 0, 0)");
  made.close();
  const opened = await Database.open(file);
  expect(opened.all("SELECT id FROM files")).toEqual([{ id: "f" }]);
  opened.close();
});

test("a database of another version is not changed", async () => {
  (await Database.open(file)).close();
  const other = new DatabaseSync(file);
  other.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
  other.close();
  await expect(Database.open(file)).rejects.toMatchObject({
    code: "batch_store_unavailable",
    message: expect.stringContaining("another version of Daybreak has made it"),
  });
  const still = new DatabaseSync(file);
  expect(still.prepare("PRAGMA user_version").get()).toEqual({ user_version: SCHEMA_VERSION + 1 });
  still.close();
});

test("the schema matches its version number", () => {
  const digest = createHash("sha256").update(SCHEMA).digest("hex").slice(0, 16);
  expect({ version: SCHEMA_VERSION, digest }).toEqual({ version: 1, digest: "cb8c93d33b6d78a3" });
});
