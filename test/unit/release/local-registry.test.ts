import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { create } from "tar";
import { afterAll, expect, it } from "vitest";
import { startLocalRegistry } from "../../../scripts/release/local-registry.ts";

const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-registry-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("lists the packages in a folder and others, and serves those in the folder", async () => {
  mkdirSync(path.join(folder, "package"));
  const manifest = { name: "@scope/one", version: "1.2.3", os: ["linux"] };
  writeFileSync(path.join(folder, "package/package.json"), JSON.stringify(manifest));
  await create({ file: path.join(folder, "one.tgz"), cwd: folder, gzip: true }, ["package"]);
  const others = [
    { ...manifest, version: "9.9.9" },
    { name: "@scope/two", version: "2.0.0" },
  ];
  await using registry = await startLocalRegistry({ folder, others, upstream: "http://127.0.0.1:1/" });

  const one = await (await fetch(`${registry.url}/@scope%2fone`)).json();
  expect(one).toMatchObject({ "dist-tags": { latest: "1.2.3" }, versions: { "1.2.3": { os: ["linux"] } } });
  const tarball = await fetch(one.versions["1.2.3"].dist.tarball);
  expect(Buffer.from(await tarball.arrayBuffer())).toEqual(readFileSync(path.join(folder, "one.tgz")));

  const two = await (await fetch(`${registry.url}/@scope/two`)).json();
  expect((await fetch(two.versions["2.0.0"].dist.tarball)).status).toBe(404);
  expect((await fetch(`${registry.url}/three`)).status).toBe(502);
});
