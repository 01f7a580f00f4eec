import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { ModelHashes } from "../../../../src/models/slots/model-hashes.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const never = new AbortController().signal;
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

test("a file is hashed once, also for the next daemon, and again when it has changed", async () => {
  const folder = await temporaryFolder();
  const [file, memory] = [path.join(folder, "a.gguf"), path.join(folder, "prompts", "hashes.json")];
  await writeFile(file, "one");
  expect(await new ModelHashes(memory).of([file], never)).toBe(sha256("one"));
  // What is remembered counts: another hash in its place is what comes back.
  const remembered = await readFile(memory, "utf8");
  await writeFile(memory, remembered.replaceAll(sha256("one"), sha256("marked")));
  expect(await new ModelHashes(memory).of([file], never)).toBe(sha256("marked"));
  await writeFile(file, "another");
  expect(await new ModelHashes(memory).of([file], never)).toBe(sha256("another"));
});

test("a file of the hub's cache is not read: its name is its hash", async () => {
  const folder = await temporaryFolder();
  const file = path.join(folder, sha256("what the hub has"));
  await writeFile(file, "x");
  expect(await new ModelHashes(path.join(folder, "hashes.json")).of([file], never)).toBe(
    sha256("what the hub has"),
  );
});

test("a damaged memory of hashes is not used", async () => {
  const folder = await temporaryFolder();
  const [file, memory] = [path.join(folder, "a.gguf"), path.join(folder, "hashes.json")];
  await writeFile(file, "one");
  await writeFile(memory, '{"a": 1');
  expect(await new ModelHashes(memory).of([file], never)).toBe(sha256("one"));
});
