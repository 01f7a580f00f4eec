import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startProblem } from "../../../src/launch/runtime.mjs";
import { need } from "../../support/need.ts";

const RUNTIME = new URL("../../../src/launch/runtime.mjs", import.meta.url).href;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-try-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A program instead of Node's binary, and the folder for the cached result. */
function program(name: string, script: string, mode = 0o755): [binary: string, kept: string] {
  const binary = path.join(folder, name);
  writeFileSync(binary, `#!/bin/sh\necho once >>"$0.starts"\n${script}\n`);
  chmodSync(binary, mode);
  return [binary, path.join(folder, `${name}-kept`)];
}

/** Runs a script with a program on a file system without execute permission. */
function onNoexec(script: string): ReturnType<typeof spawnSync> {
  const make = `mount -t tmpfs -o noexec none /mnt && printf '#!/bin/sh\\necho v26.1.0\\n' >/mnt/node && chmod +x /mnt/node`;
  return spawnSync("unshare", ["--user", "--map-root-user", "--mount", "sh", "-ec", `${make} && ${script}`]);
}

describe.skipIf(process.platform === "win32")("the bundled Node binary", () => {
  it("is tried once, and again when it has changed", () => {
    const [binary, kept] = program("sound", "echo v26.1.0");
    const starts = (): number => readFileSync(`${binary}.starts`, "utf8").split("\n").length - 1;
    expect([startProblem(binary, kept), startProblem(binary, kept), starts()]).toEqual([
      undefined,
      undefined,
      1,
    ]);
    program("sound", "echo v26.1.0 # changed");
    expect([startProblem(binary, kept), starts()]).toEqual([undefined, 2]);
  });

  it("may be started when the result cannot be cached", () => {
    const [binary] = program("homeless", "echo v26.1.0");
    expect(startProblem(binary, path.join(binary, "no-folder"))).toBeUndefined();
  });

  it("that lacks a library is reported, with the packages that contain it", () => {
    const words =
      "node: error while loading shared libraries: libatomic.so.1: cannot open shared object file";
    const [binary, kept] = program("slim", `echo "${words}" >&2; exit 127`);
    expect(startProblem(binary, kept)).toEqual({
      problem: `The Node binary that comes with Daybreak does not start here: ${words}`,
      cure: expect.stringContaining("apt-get install libatomic1"),
    });
    expect(existsSync(kept)).toBe(false);
  });

  it("that is not a program is reported, without its bytes", () => {
    const [binary, kept] = program("damaged", "");
    writeFileSync(binary, Buffer.from("\u007fELF\u001b[31m\u0000\u0007nothing\n"));
    expect(startProblem(binary, kept)?.problem).toMatch(/does not start here: [\x20-\x7e]+$/);
  });

  const NOEXEC = need(
    "user namespaces, to mount a file system that allows no programs",
    onNoexec("true").status === 0,
  );
  it.skipIf(NOEXEC.isMissing)(`on a file system without execute permission is reported${NOEXEC.note}`, () => {
    const code = `import(${JSON.stringify(RUNTIME)}).then((it) => console.log(it.startProblem("/mnt/node", "/mnt/kept")?.problem))`;
    const { stdout } = onNoexec(`${process.execPath} --eval '${code}'`);
    expect(String(stdout)).toMatch(/may not be executed \(\/mnt\/node\)/);
  });

  it.each([
    ["ends by a signal", "kill -ILL $$", 0o755, /does not start here: ended by SIGILL/],
    ["says nothing", "exit 0", 0o755, /does not start here: exit code 0/],
    ["does not end", "exec sleep 60", 0o755, /does not start here: no answer in 500 ms/, 500],
    ["may not be executed", "echo v26.1.0", 0o644, /may not be executed/],
  ])("that %s is reported", (name, script, mode, problem, deadlineMs = 60_000) => {
    const [binary, kept] = program(name, script, mode);
    expect(startProblem(binary, kept, deadlineMs)?.problem).toMatch(problem);
  });
});
