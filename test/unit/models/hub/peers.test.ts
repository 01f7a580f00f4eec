import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { HubPeers } from "../../../../src/models/hub/cache/cached-files.ts";
import type { PullProgress } from "../../../../src/models/hub/hub-types.ts";
import { sha256 } from "../../../support/fixture-hub-content.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { content, failureOf, fixtureHub, pull, REPO, storeAt } from "./hub-test.ts";

const FILE = "tiny-Q4_K_M.gguf";
const COMMIT = "c".repeat(40);

/** Other machines that send these bytes, up to an offset. */
function sending(bytes: Buffer, end = bytes.length, listed = bytes): HubPeers {
  return {
    async *read(_file, offset, onMachine) {
      if (offset >= end) return;
      onMachine("desk");
      yield bytes.subarray(offset, end);
    },
    list: (repo) =>
      Promise.resolve([
        {
          machine: "desk",
          listing: {
            repo,
            commit: COMMIT,
            files: [
              {
                path: FILE,
                size: listed.length,
                digest: { algorithm: "sha256", hex: sha256(listed) },
                xet: false,
              },
            ],
          },
        },
      ]),
  };
}

async function scene(peers: (bytes: Buffer) => HubPeers) {
  const bytes = content(300_000);
  const hub = await fixtureHub({ repos: { [REPO]: { files: { [FILE]: bytes } } } });
  const { store } = storeAt(await temporaryFolder(), hub);
  store.usePeers(peers(bytes));
  const seen: PullProgress[] = [];
  const notes = () => seen.flatMap((step) => (step.status === "noted" ? [step.text] : []));
  const onProgress = (step: PullProgress) => void seen.push(step);
  return { bytes, hub, store, notes, onProgress };
}

describe("a pull with other machines", () => {
  it("downloads a complete file from them only, and reports the machine", async () => {
    const { bytes, hub, store, notes, onProgress } = await scene(sending);
    const { files } = await pull(store, { onProgress });
    expect((await readFile(files[0] ?? "")).equals(bytes)).toBe(true);
    expect(hub.downloads).toEqual([]);
    expect(notes()).toEqual([`${FILE} comes from desk, a machine of the fleet`]);
  });

  it("downloads the rest from the hub if they cannot continue", async () => {
    const { bytes, hub, store } = await scene((all) => sending(all, 1000));
    const { files } = await pull(store);
    expect((await readFile(files[0] ?? "")).equals(bytes)).toBe(true);
    expect(hub.downloads.at(-1)?.headers.range).toBe("bytes=1000-");
  });

  it("downloads the file from the hub again if their data is corrupt", async () => {
    const { bytes, hub, store } = await scene((all) => sending(Buffer.alloc(all.length)));
    const { files } = await pull(store);
    expect((await readFile(files[0] ?? "")).equals(bytes)).toBe(true);
    expect(hub.downloads.at(-1)?.headers.range).toBeUndefined();
  });

  it("uses their listing while the hub is unreachable, and reports it", async () => {
    const { bytes, hub, store, notes, onProgress } = await scene(sending);
    await hub.close();
    const { files, revision } = await pull(store, { onProgress });
    expect((await readFile(files[0] ?? "")).equals(bytes)).toBe(true);
    expect(revision).toBe(COMMIT);
    expect(notes()[0]).toBe(
      `The hub cannot be reached: using the copy of ${REPO} on desk, a machine of the fleet`,
    );
  });

  it("keeps no corrupt file while the hub is unreachable", async () => {
    const { hub, store } = await scene((all) => sending(all, all.length, content(all.length)));
    await hub.close();
    expect(await failureOf(pull(store))).toMatchObject({ code: "hub_unreachable" });
    expect(await store.list()).toEqual([]);
  });

  it("does not use their listing if the hub refuses", async () => {
    const { hub, store } = await scene(sending);
    hub.failNext(/^hub GET \/api/, { status: 401 }, 10);
    expect(await failureOf(pull(store))).toMatchObject({ code: "hub_repo_not_found" });
  });
});
