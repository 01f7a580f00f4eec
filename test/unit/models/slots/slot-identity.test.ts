import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import {
  checkIdentity,
  identityFiles,
  isSameIdentity,
  ModelHashes,
  slotIdentity,
} from "../../../../src/models/slots/slot-identity.ts";
import { engineSpec } from "../../../support/engine-fixture.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const [MODEL, OTHER] = ["1".repeat(64), "2".repeat(64)];
const spec = engineSpec("/models/a.gguf");
const header = {
  ...slotIdentity(MODEL, "daybreak", spec),
  tokens: 3,
  bytes: 8,
  contextSize: 512,
};

test("a prompt fits a model with another context, path, number of slots and threads", () => {
  const same = engineSpec("/elsewhere/b.gguf", {
    contextSize: 8192,
    sharedContext: true,
    slots: 1,
    threads: 3,
    batchSize: 512,
    chatTemplate: "{{ messages }}",
    contextShift: true,
  });
  expect(isSameIdentity(header, slotIdentity(MODEL, "daybreak", same))).toBe(true);
  expect(() => checkIdentity("story", header, slotIdentity(MODEL, "daybreak", same))).not.toThrow();
});

test.each([
  ["model file", slotIdentity(OTHER, "daybreak", spec)],
  ["version of the engine", slotIdentity(MODEL, "stock", spec)],
  ["load settings", slotIdentity(MODEL, "daybreak", { ...spec, cacheTypeK: "q8_0" })],
  ["load settings", slotIdentity(MODEL, "daybreak", { ...spec, flashAttention: "true" })],
])("a prompt is rejected, and the error names the different %s", (what, now) => {
  expect(() => checkIdentity("story", header, now)).toThrow(
    expect.objectContaining({ code: "slot_state_mismatch", message: expect.stringContaining(what) }),
  );
});

test("models with adapters are distinguished by the files, and not by the default scales", () => {
  const one = { ...spec, adapters: [{ path: "/b.gguf", scale: 1 }] };
  const half = { ...spec, adapters: [{ path: "/b.gguf", scale: 0.5 }] };
  expect(identityFiles(one)).toEqual(["/models/a.gguf", "/b.gguf"]);
  expect(slotIdentity(MODEL, "daybreak", one)).toEqual(slotIdentity(MODEL, "daybreak", half));
});

const never = new AbortController().signal;
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

test("a file is hashed once, also for the next daemon, and again after it has changed", async () => {
  const folder = await temporaryFolder();
  const [file, memory] = [path.join(folder, "a.gguf"), path.join(folder, "prompts", "hashes.json")];
  await writeFile(file, "one");
  expect(await new ModelHashes(memory).of([file], never)).toBe(sha256("one"));
  // The stored hash is used: another one in its place is returned.
  const remembered = await readFile(memory, "utf8");
  await writeFile(memory, remembered.replaceAll(sha256("one"), sha256("marked")));
  expect(await new ModelHashes(memory).of([file], never)).toBe(sha256("marked"));
  await writeFile(file, "another");
  expect(await new ModelHashes(memory).of([file], never)).toBe(sha256("another"));
});

test("a file of the hub cache is not read, because its name is its hash", async () => {
  const folder = await temporaryFolder();
  const file = path.join(folder, sha256("what the hub has"));
  await writeFile(file, "x");
  expect(await new ModelHashes(path.join(folder, "hashes.json")).of([file], never)).toBe(
    sha256("what the hub has"),
  );
});

test("a damaged file of stored hashes is ignored", async () => {
  const folder = await temporaryFolder();
  const [file, memory] = [path.join(folder, "a.gguf"), path.join(folder, "hashes.json")];
  await writeFile(file, "one");
  await writeFile(memory, '{"a": 1');
  expect(await new ModelHashes(memory).of([file], never)).toBe(sha256("one"));
});
