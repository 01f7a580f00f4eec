import { createHash } from "node:crypto";
import { readdir, readFile, realpath } from "node:fs/promises";
import path from "node:path";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import type { FixtureRepo } from "../../../../test/support/fixture-hub.ts";
import { sha256 } from "../../../../test/support/fixture-hub-content.ts";
import { shardsOf, tinyLlama } from "../../../../test/support/tiny-models.ts";
import { writeGguf } from "../../../../test/support/gguf-writer.ts";
import type { Findings } from "./findings.ts";
import type { Random } from "./random.ts";

interface Repos {
  readonly content: Readonly<Record<string, FixtureRepo>>;
  /** A hub spec for each model. */
  readonly specs: readonly string[];
  /** SHA-256 of all files there are. */
  readonly digests: ReadonlySet<string>;
}

/** Repositories of small but real models: whole ones and shards, in large file storage, git and chunk storage. */
export function makeRepos(random: Random, count: number): Repos {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-hub-models-"));
  const bytesOf = (model: Parameters<typeof writeGguf>[1]): Buffer => {
    const file = path.join(folder, "x.gguf");
    writeGguf(file, model, random.int(1, 2 ** 30));
    return readFileSync(file);
  };
  const content: Record<string, FixtureRepo> = {};
  const specs: string[] = [];
  for (let number = 0; number < count; number++) {
    const name = `ada/model-${number}-GGUF`;
    const options = { lfs: number % 4 !== 1, xet: number % 4 === 2 };
    const shards = number % 4 === 3 ? shardsOf(tinyLlama(), 3) : [tinyLlama()];
    const files = shards.map((shard, index) => {
      const part = shards.length === 1 ? "" : `-0000${index + 1}-of-0000${shards.length}`;
      return [`model${part}.gguf`, { content: bytesOf(shard), ...options }] as const;
    });
    content[name] = {
      files: Object.fromEntries([...files, ["README.md", "# A model"]]),
      refs: { "v1.0": commit(name) },
    };
    specs.push(`hf:${name}`, `hf:${name}@v1.0`);
  }
  rmSync(folder, { recursive: true });
  const all = Object.values(content).flatMap(({ files }) => Object.values(files));
  const digests = all.map((file) =>
    sha256(typeof file === "object" && "content" in file ? file.content : file),
  );
  return { content, specs, digests: new Set(digests) };
}

/** Every file of every snapshot must be one of the hub's, and nothing may lie beside them. */
export async function checkCache(cacheDir: string, repos: Repos, findings: Findings): Promise<void> {
  for (const name of await readdir(cacheDir, { recursive: true })) {
    if (/\.next$|\.owner$|\.pull$|\.incomplete$/.test(name)) findings.add("a file was left over", name);
    if (!/snapshots.*\.gguf$/.test(name)) continue;
    const digest = sha256(await readFile(await realpath(path.join(cacheDir, name))));
    findings.count("files in snapshots checked");
    if (!repos.digests.has(digest)) findings.add("a file has another content than on the hub", name);
  }
}

function commit(name: string): string {
  return createHash("sha1").update(name).digest("hex");
}
