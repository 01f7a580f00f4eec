import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { BlobLock } from "../../../../../src/models/hub/download/blob-lock.ts";
import { temporaryFolder } from "../../temporary-folder.ts";

const never = new AbortController().signal;

function acquire(lockPath: string, onWait: () => Promise<boolean> = () => Promise.resolve(true)) {
  return BlobLock.acquire(lockPath, { sleep: () => Promise.resolve(), signal: never, onWait });
}

afterEach(() => {
  vi.useRealTimers();
});

describe("the lock of a blob", () => {
  it("is held by one at a time and leaves nothing behind", async () => {
    const lockPath = path.join(await temporaryFolder(), "locks", "x.owner");
    {
      await using lock = await acquire(lockPath);
      expect(lock).toBeInstanceOf(BlobLock);
      expect(await acquire(lockPath)).toBeUndefined();
    }
    expect(await readdir(path.dirname(lockPath))).toEqual([]);
    await using again = await acquire(lockPath);
    expect(again).toBeInstanceOf(BlobLock);
  });

  it("is taken over at once from a process that was killed", async () => {
    const lockPath = path.join(await temporaryFolder(), "x.owner");
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    await once(child, "spawn");
    await writeFile(lockPath, JSON.stringify({ id: "x", pid: child.pid, host: os.hostname(), beat: 0 }));
    expect(await acquire(lockPath)).toBeUndefined();

    child.kill("SIGKILL");
    await once(child, "exit");

    await using lock = await acquire(lockPath);
    expect(lock).toBeInstanceOf(BlobLock);
  });

  it("tells its owner when another has taken it over, and leaves it to that one", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const lockPath = path.join(await temporaryFolder(), "x.owner");
    const lock = (await acquire(lockPath))!;
    const other = JSON.stringify({ id: "other", pid: process.pid, host: os.hostname(), beat: 0 });
    await writeFile(lockPath, other);

    const lost = once(lock.lost, "abort");
    vi.advanceTimersByTime(2000);
    await lost;
    await lock[Symbol.asyncDispose]();

    expect(await readFile(lockPath, "utf8")).toBe(other);
  });

  it("shows that its owner lives", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const lockPath = path.join(await temporaryFolder(), "x.owner");
    await using lock = await acquire(lockPath);
    expect(lock?.lost.aborted).toBe(false);
    const before = await readFile(lockPath, "utf8");

    vi.advanceTimersByTime(2000);

    await vi.waitFor(async () => expect(await readFile(lockPath, "utf8")).not.toBe(before));
  });

  it("fails where it cannot be made instead of trying for ever", async () => {
    const folder = await temporaryFolder();
    await writeFile(path.join(folder, "file"), "");
    await expect(acquire(path.join(folder, "file", "x.owner"))).rejects.toThrow(/ENOTDIR|EEXIST/);

    // A folder in its place cannot be read as a lock and never goes away.
    const lockPath = path.join(folder, "x.owner");
    await mkdir(lockPath);
    expect(await acquire(lockPath)).toBeUndefined();
  });
});
