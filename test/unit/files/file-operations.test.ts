import { once } from "node:events";
import { spawn } from "node:child_process";
import { access, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, it } from "vitest";
import { removeFile, replaceFile, retryWhileInUse } from "../../../src/files/file-operations.ts";
import { temporaryFolder } from "../models/temporary-folder.ts";

/** Runs a change that fails with these codes before it works; returns the pauses. */
function failing(...codes: string[]) {
  const waits: number[] = [];
  let calls = 0;
  return {
    waits,
    get calls() {
      return calls;
    },
    change: async () => {
      calls++;
      const code = codes.shift();
      if (code !== undefined) throw Object.assign(new Error(code), { code });
    },
    sleep: async (ms: number) => void waits.push(ms),
  };
}

it("retries on Windows with growing pauses while a scanner has the file open", async () => {
  const attempt = failing("EPERM", "EBUSY", "EACCES");
  await retryWhileInUse(attempt.change, { platform: "win32", sleep: attempt.sleep });
  expect(attempt.calls).toBe(4);
  expect(attempt.waits).toEqual(attempt.waits.toSorted((a, b) => a - b));
});

it("gives up after a number of retries", async () => {
  const { change, sleep } = failing(...Array.from({ length: 50 }, () => "EPERM"));
  await expect(retryWhileInUse(change, { platform: "win32", sleep })).rejects.toMatchObject({
    code: "EPERM",
  });
});

it.each([
  ["win32", "ENOENT"],
  ["linux", "EPERM"],
  ["darwin", "EACCES"],
] as const)("fails at once on %s with %s", async (platform, code) => {
  const attempt = failing(code);
  await expect(retryWhileInUse(attempt.change, { platform, sleep: attempt.sleep })).rejects.toMatchObject({
    code,
  });
  expect(attempt.calls).toBe(1);
});

/** Windows cannot remove or rename a file that a program has open without sharing it; other systems can. */
it("removes and replaces a file that another process has open for a moment", async () => {
  const folder = await temporaryFolder();
  const [old, next] = [path.join(folder, "old"), path.join(folder, "next")];
  for (const change of [async () => await removeFile(old), async () => await replaceFile(next, old)]) {
    await writeFile(old, "");
    await writeFile(next, "next");
    // SQLite opens its file without sharing the right to remove it.
    const program = `
      import { DatabaseSync } from "node:sqlite";
      const database = new DatabaseSync(process.argv[1]);
      database.exec("BEGIN EXCLUSIVE");
      console.log("open");
      setTimeout(() => {
        database.close();
        process.exit();
      }, 50);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program, old], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(child, "exit");
    await once(child.stdout, "data");
    await change();
    await ended;
  }
  expect(await readFile(old, "utf8")).toBe("next");
  await expect(access(next)).rejects.toThrow("ENOENT");
});
