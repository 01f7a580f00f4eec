import { createHash, randomBytes } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { FileFetcher } from "../../../src/fleet/files/file-fetcher.ts";
import { ANSWER, CHUNK_BYTES, serveFiles } from "../../../src/fleet/files/file-server.ts";
import { writeJson } from "../../../src/fleet/wire-format.ts";
import { CachedFiles, type SharedFile } from "../../../src/models/hub/cache/cached-files.ts";
import { heartbeat, memberInfo, FleetWire, idOf } from "../../support/fleet-wire.ts";
import { FILES_HAVE_LINKS } from "../../support/links.ts";

const REPO = "ada/tiny-GGUF";
const COMMIT = "c".repeat(40);
const logger = { debug: () => {} };
const never = new AbortController().signal;

/** A cache folder with one file. */
function cacheWith(content: Buffer): { cacheDir: string; file: SharedFile } {
  const cacheDir = mkdtempSync(path.join(os.tmpdir(), "daybreak-unit-"));
  onTestFinished(() => rmSync(cacheDir, { recursive: true, force: true }));
  const root = path.join(cacheDir, "models--ada--tiny-GGUF");
  const hex = createHash("sha256").update(content).digest("hex");
  for (const folder of ["blobs", "refs", `snapshots/${COMMIT}`])
    mkdirSync(path.join(root, folder), { recursive: true });
  writeFileSync(path.join(root, "blobs", hex), content);
  writeFileSync(path.join(root, "refs/main"), COMMIT);
  if (FILES_HAVE_LINKS)
    symlinkSync(`../../blobs/${hex}`, path.join(root, `snapshots/${COMMIT}/tiny-Q8_0.gguf`));
  return { cacheDir, file: { repo: REPO, digest: { algorithm: "sha256", hex }, size: content.length } };
}

function fetcherFor(wire: FleetWire, ...names: string[]): FileFetcher {
  const machines = names.map((name) => ({ info: memberInfo(name), heartbeat: heartbeat(name) }));
  const presence = { machines, get: () => machines[0], onChange: () => () => true };
  return new FileFetcher({ connection: wire.connect(), presence });
}

function serve(wire: FleetWire, name: string, cacheDir: string): void {
  serveFiles({ connection: wire.connect(), files: new CachedFiles(cacheDir), logger, id: idOf(name) });
}

/** Machine with arbitrary answers. */
function pretend(wire: FleetWire, name: string, answer: (kind: string) => Uint8Array): void {
  wire.connect().listen(`fleet.files.${idOf(name)}`, (data, _subject, reply) => {
    reply?.(answer(String(Object(JSON.parse(Buffer.from(data).toString())).kind)));
  });
}

async function fetchAll(fetcher: FileFetcher, file: SharedFile, offset = 0) {
  const names: string[] = [];
  const pieces: Uint8Array[] = [];
  for await (const piece of fetcher.read(file, offset, (name) => names.push(name), never)) pieces.push(piece);
  return { names, content: Buffer.concat(pieces) };
}

describe("files of other machines", () => {
  const content = randomBytes(2 * CHUNK_BYTES + 17);

  test("come in chunks, from any offset", async () => {
    const wire = new FleetWire();
    const { cacheDir, file } = cacheWith(content);
    serve(wire, "desk", cacheDir);
    const whole = await fetchAll(fetcherFor(wire, "desk"), file);
    expect(whole.names).toEqual(["desk"]);
    expect(whole.content.equals(content)).toBe(true);
    const rest = await fetchAll(fetcherFor(wire, "desk"), file, CHUNK_BYTES + 1);
    expect(rest.content.equals(content.subarray(CHUNK_BYTES + 1))).toBe(true);
  });

  test("fit into the message limit of the NATS server", async () => {
    const wire = new FleetWire();
    wire.maxPayload = 1000;
    const { cacheDir, file } = cacheWith(content.subarray(0, 5000));
    serve(wire, "desk", cacheDir);
    expect((await fetchAll(fetcherFor(wire, "desk"), file)).content.equals(content.subarray(0, 5000))).toBe(
      true,
    );
  });

  test("end early if no machine has them", async () => {
    const wire = new FleetWire();
    const { cacheDir, file } = cacheWith(content);
    serve(wire, "desk", cacheDir);
    const other = { ...file, digest: { ...file.digest, hex: "0".repeat(64) } };
    expect((await fetchAll(fetcherFor(wire, "desk"), other)).content).toHaveLength(0);
    expect((await fetchAll(fetcherFor(wire, "desk"), { ...file, size: file.size + 1 })).content).toHaveLength(
      0,
    );
    expect((await fetchAll(fetcherFor(new FleetWire(), "desk"), file)).content).toHaveLength(0);
  });

  test("are sent while their machine still downloads them", async () => {
    const wire = new FleetWire();
    const { cacheDir, file } = cacheWith(content);
    const blob = path.join(cacheDir, "models--ada--tiny-GGUF/blobs", file.digest.hex);
    renameSync(blob, `${blob}.incomplete`);
    truncateSync(`${blob}.incomplete`, CHUNK_BYTES + 1);
    serve(wire, "stopped", cacheDir);
    expect((await fetchAll(fetcherFor(wire, "stopped"), file)).content).toHaveLength(0);
    const files = new CachedFiles(cacheDir, new Set([file.digest.hex]));
    serveFiles({ connection: wire.connect(), files, logger, id: idOf("desk") });
    const pieces: Uint8Array[] = [];
    for await (const piece of fetcherFor(wire, "desk").read(file, 0, () => {}, never)) {
      pieces.push(piece);
      if (pieces.length > 1) continue;
      writeFileSync(`${blob}.incomplete`, content);
      renameSync(`${blob}.incomplete`, blob);
    }
    expect(Buffer.concat(pieces).equals(content)).toBe(true);
  });

  test.each([
    [
      "claims to have them but does not send them",
      (kind: string) => Uint8Array.of(kind === "has" ? ANSWER.HERE : ANSWER.NOT_HERE),
    ],
    ["sends too little", () => Uint8Array.of(ANSWER.HERE, 1)],
    ["sends too much", (kind: string) => Buffer.alloc(kind === "has" ? 1 : CHUNK_BYTES + 2)],
    ["sends nothing at all", () => new Uint8Array()],
  ])("are fetched from another machine when one %s", async (_what, answer) => {
    const wire = new FleetWire();
    const { cacheDir, file } = cacheWith(content);
    pretend(wire, "liar", answer);
    serve(wire, "desk", cacheDir);
    const { names, content: got } = await fetchAll(fetcherFor(wire, "liar", "desk"), file);
    expect(names).toEqual(["desk"]);
    expect(got.equals(content)).toBe(true);
  });

  test("are served only for valid names and ranges", async () => {
    const wire = new FleetWire();
    const { cacheDir, file } = cacheWith(content);
    writeFileSync(path.join(cacheDir, "secret"), "x");
    serve(wire, "desk", cacheDir);
    const connection = wire.connect();
    const ask = (question: object) =>
      connection.request(`fleet.files.${idOf("desk")}`, writeJson(question), 1000);
    const has = { kind: "has", ...file };
    expect([...(await ask(has))]).toEqual([ANSWER.HERE]);
    for (const bad of [
      { ...has, repo: "../.." },
      { ...has, digest: { algorithm: "sha256", hex: "../../secret" } },
      { ...has, kind: "read", offset: -1, length: 10 },
      { ...has, kind: "read", offset: 0, length: 1e9 },
      { ...has, kind: "read", offset: file.size, length: 10 },
      { kind: "list", repo: REPO, revision: "../main" },
      { kind: "unknown" },
    ]) {
      expect([...(await ask(bad))]).toEqual([ANSWER.NOT_HERE]);
    }
  });

  test.skipIf(!FILES_HAVE_LINKS)("are listed with their digests, and invalid lists are ignored", async () => {
    const wire = new FleetWire();
    const { cacheDir, file } = cacheWith(content);
    serve(wire, "desk", cacheDir);
    const forged = {
      repo: REPO,
      commit: COMMIT,
      files: [{ path: "../x.gguf", size: 1, digest: file.digest, xet: false }],
    };
    pretend(wire, "liar", () => Buffer.concat([Uint8Array.of(ANSWER.HERE), writeJson(forged)]));
    const files = [{ path: "tiny-Q8_0.gguf", size: file.size, digest: file.digest, xet: false }];
    const fetcher = fetcherFor(wire, "liar", "desk");
    const listing = { repo: REPO, commit: COMMIT, files };
    expect(await fetcher.list(REPO, "main", never)).toEqual([{ machine: "desk", listing }]);
    expect(await fetcher.list(REPO, COMMIT, never)).toEqual([{ machine: "desk", listing }]);
    expect(await fetcher.list(REPO, "other", never)).toEqual([]);
  });
});
