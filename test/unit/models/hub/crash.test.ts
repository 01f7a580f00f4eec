import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { expect, it } from "vitest";
import { sha256 } from "../../../support/fixture-hub-content.ts";
import { content, fixtureHub, pull, REPO, storeAt } from "./hub-test.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const SIZE = 300_000;
const STORE = new URL("../../../../src/models/hub/disk-hub-store.ts", import.meta.url);

/** Program that pulls and prints a line when the first bytes are on disk. */
const PROGRAM = `
  const [cacheDir, hubUrl, owner, repo] = process.argv.slice(1);
  const { DiskHubStore } = await import(${JSON.stringify(STORE.href)});
  const onProgress = (line) => line.downloadedBytes > 0 && console.log("begun");
  const request = { spec: { owner, repo }, projector: undefined };
  await new DiskHubStore({ cacheDir, hubUrl }).pull(request, onProgress, new AbortController().signal);
`;

it("a pull resumes immediately after a process was killed during the download", async () => {
  const bytes = content(SIZE);
  const hub = await fixtureHub({ repos: { [REPO]: { files: { "tiny-Q4_K_M.gguf": bytes } } } });
  hub.failNext(/^storage GET /, { pause: { after: 150_000, until: new Promise(() => {}) } });
  const cacheDir = await temporaryFolder();
  const program = ["--input-type=module", "-e", PROGRAM, cacheDir, hub.url, ...REPO.split("/")];
  const child = spawn(process.execPath, program, { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "exit");
  const blobs = path.join(cacheDir, "models--ada--tiny-GGUF", "blobs");
  const part = path.join(blobs, `${sha256(bytes)}.incomplete`);
  const { size } = await stat(part);
  const { store, waits } = storeAt(cacheDir, hub);
  expect(await store.list()).toEqual([]);

  const model = await pull(store);

  expect(size).toBeGreaterThan(0);
  expect(hub.requests.at(-1)?.headers.range).toBe(`bytes=${size}-`);
  expect(waits).toEqual([]);
  expect(sha256(await readFile(model.files[0]!))).toBe(sha256(bytes));
  expect(await readdir(blobs)).toEqual([sha256(bytes)]);
});
