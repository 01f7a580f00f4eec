import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { FolderLock, isClaimed, LOCK_FILE } from "../../../src/files/locks.ts";
import { temporaryFolder } from "../models/temporary-folder.ts";
import { FILE_RIGHTS } from "../../support/need.ts";

const FOLDER_LOCK = new URL("../../../src/files/locks.ts", import.meta.url).href;

/** Starts a process that runs this code with `lock`, the lock of the folder; its first output shows that it has begun. */
async function holder(folder: string, code: string, ...options: string[]) {
  const program = `
    import { FolderLock } from ${JSON.stringify(FOLDER_LOCK)};
    const [folder] = process.argv.slice(1);
    const lock = new FolderLock(folder);
    const held = () => console.log("held");
    setInterval(() => {}, 1000);
    ${code}
  `;
  const child = spawn(process.execPath, [...options, "--input-type=module", "-e", program, folder], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return child;
}

/** Time for this number of attempts to get a lock. */
async function looksOf(count: number): Promise<string> {
  await sleep(count * 5);
  return "still held";
}

describe("the lock of a folder", () => {
  it("runs changes one after the other, in order, also when one fails", async () => {
    const folder = path.join(await temporaryFolder(), "made", "by", "it");
    const lock = new FolderLock(folder);
    const order: number[] = [];
    let running = 0;

    const results = await Promise.allSettled(
      [1, 2, 3, 4].map(
        async (number) =>
          await lock.run(async () => {
            expect(++running).toBe(1);
            await stat(folder);
            order.push(number);
            running--;
            if (number === 2) throw new Error("no");
          }),
      ),
    );

    expect(order).toEqual([1, 2, 3, 4]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    expect(await readdir(folder)).toEqual([LOCK_FILE]);
  });

  it("is free at once when its holder is killed", async () => {
    const folder = await temporaryFolder();
    const child = await holder(
      folder,
      "await lock.run(async () => { held(); await new Promise(() => {}); });",
    );
    let isFree = false;
    const next = new FolderLock(folder).run(async () => void (isFree = true));
    expect(await Promise.race([next, looksOf(20)])).toBe("still held");
    expect(isFree).toBe(false);
    const killedAt = performance.now();

    child.kill("SIGKILL");
    await next;

    // Waiting for a held lock would end after half a minute.
    expect(performance.now() - killedAt).toBeLessThan(15_000);
  });

  it("is not released by garbage collection while its holder waits", async () => {
    const folder = await temporaryFolder();
    const child = await holder(
      folder,
      `
        const { promise: taken, resolve } = Promise.withResolvers();
        lock.run(async () => {
          resolve();
          await new Promise(() => {});
        });
        await taken;
        for (let collected = 0; collected < 20; collected++) {
          await new Promise((resolve) => setTimeout(resolve, 5));
          globalThis.gc();
        }
        held();
      `,
      "--expose-gc",
    );

    const waiting = new FolderLock(folder, { maxWaitMs: 50 }).run(async () => {});

    await expect(waiting).rejects.toMatchObject({ code: "model_busy" });
    child.kill("SIGKILL");
    await once(child, "exit");
  });

  it("may have a path of any length", async () => {
    // Longer than the 260 characters that Windows accepts by default.
    const folder = path.join(await temporaryFolder(), ...Array.from({ length: 3 }, () => "x".repeat(100)));
    const [lock, other] = [new FolderLock(folder), new FolderLock(folder, { maxWaitMs: 10 })];

    await lock.run(async () => {
      await expect(other.run(async () => {})).rejects.toMatchObject({ code: "model_busy" });
    });
    expect(await readdir(folder)).toEqual([LOCK_FILE]);
  });

  it("names the lock file when a suspended process holds it", async () => {
    const folder = await temporaryFolder();
    const child = await holder(
      folder,
      "await lock.run(async () => { held(); await new Promise(() => {}); });",
    );

    const waiting = new FolderLock(folder, { maxWaitMs: 100 }).run(async () => {});

    await expect(waiting).rejects.toMatchObject({
      code: "model_busy",
      retryable: true,
      message: expect.stringContaining(path.join(folder, LOCK_FILE)),
    });
    child.kill("SIGKILL");
    await once(child, "exit");
  });

  it("is readable only by its owner, and is recreated when a program has overwritten it", async () => {
    const folder = await temporaryFolder();
    const file = path.join(folder, LOCK_FILE);
    await writeFile(file, "something else, and more of it than a few bytes");

    expect(await new FolderLock(folder).run(async () => "done")).toBe("done");

    expect(await stat(file)).toMatchObject({ size: 0 });
    const { mode } = await stat(file);
    // Windows has no such permissions.
    expect(process.platform === "win32" ? 0 : mode & 0o077).toBe(0);
  });

  it("fails with the system's error when the folder cannot be created", async () => {
    const folder = await temporaryFolder();
    await writeFile(path.join(folder, "file"), "");

    await expect(new FolderLock(path.join(folder, "file")).run(async () => {})).rejects.toThrow(
      /EEXIST|ENOTDIR/,
    );
  });

  it("fails with the system's error when a folder has its name", async () => {
    const folder = await temporaryFolder();
    await mkdir(path.join(folder, LOCK_FILE));

    await expect(new FolderLock(folder).run(async () => {})).rejects.toThrow("unable to open");
  });

  it.skipIf(FILE_RIGHTS.isMissing)(
    `cannot be had in a folder that is read-only, and says why${FILE_RIGHTS.note}`,
    async () => {
      const folder = await temporaryFolder();
      await chmod(folder, 0o500);

      await expect(new FolderLock(folder).run(async () => {})).rejects.toThrow("EACCES");
      await chmod(folder, 0o700);
    },
  );
});

describe("a claimed file", () => {
  it("has one owner at a time and is removed afterwards", async () => {
    const folder = await temporaryFolder();
    const [lock, other] = [new FolderLock(folder), new FolderLock(folder)];
    const file = path.join(folder, "locks", "x.pull");
    {
      await using own = await lock.claim(file);
      expect(own).toBeDefined();
      expect(await other.claim(file)).toBeUndefined();
      expect(await other.run(() => isClaimed(file))).toBe(true);
    }
    expect(await readdir(path.dirname(file))).toEqual([]);
    expect(await other.run(() => isClaimed(file))).toBe(false);
    await using again = await other.claim(file);
    expect(again).toBeDefined();
  });

  it("is taken over immediately from a killed process", async () => {
    const folder = await temporaryFolder();
    const file = path.join(folder, "x.pull");
    const child = await holder(folder, `globalThis.own = await lock.claim(${JSON.stringify(file)}); held();`);
    const lock = new FolderLock(folder);
    expect(await lock.claim(file)).toBeUndefined();

    child.kill("SIGKILL");
    await once(child, "exit");

    await using own = await lock.claim(file);
    expect(own).toBeDefined();
  });

  it("never has two owners among many that claim and release it", async () => {
    const folder = await temporaryFolder();
    const file = path.join(folder, "x.pull");
    let owners = 0;
    let turns = 0;

    await Promise.all(
      [1, 2, 3].map(async () => {
        const lock = new FolderLock(folder);
        for (let got = 0; got < 5;) {
          await using own = await lock.claim(file);
          if (own === undefined) continue;
          expect(++owners).toBe(1);
          await stat(file);
          owners--;
          got++;
          turns++;
        }
      }),
    );

    expect(turns).toBe(15);
  });

  // Windows cannot remove a folder with an open file.
  it.skipIf(process.platform === "win32")("can be released after its folder was removed", async () => {
    const folder = await temporaryFolder();
    const lock = new FolderLock(folder);
    const own = await lock.claim(path.join(folder, "x.pull"));
    await rm(folder, { recursive: true });

    await own?.[Symbol.asyncDispose]();

    expect(await lock.claim(path.join(folder, "x.pull"))).toBeDefined();
  });
});
