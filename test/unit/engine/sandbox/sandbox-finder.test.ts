import path from "node:path";
import { describe, expect, test } from "vitest";
import { spawnEngine } from "../../../../src/engine/launch.ts";
import { bubblewrap } from "../../../../src/engine/sandbox/bubblewrap.ts";
import { sandboxExec, sandboxProfile } from "../../../../src/engine/sandbox/sandbox-exec.ts";
import { type Candidates, SandboxFinder } from "../../../../src/engine/sandbox/sandbox-finder.ts";
import type { Sandbox } from "../../../../src/engine/sandbox/sandbox.ts";

/** A wall that starts another program in place of the one that it is given. */
function wallOf(name: Sandbox["name"], script: string): Sandbox {
  return {
    name,
    parts: [`parts of ${name}`],
    enclose: (start) => ({ ...start, command: process.execPath, args: ["--eval", script] }),
  };
}

/** What a process does that an engine could take the place of: it writes back what it reads. */
const ECHO =
  'process.stdin.once("data", (data) => { require("node:fs").writeSync(3, data); process.exit(0); })';

const works = wallOf("namespaces", ECHO);
const fails = wallOf("bubblewrap", 'console.error("setting up uid map: Permission denied"); process.exit(1)');

const found = (walls: Sandbox[], missing: string[] = []): (() => Candidates) => {
  return () => ({ walls, missing });
};

function neverAsked(): Candidates {
  throw new Error("looked for");
}

describe("the wall around engines", () => {
  test("is not known before it has been tried", () => {
    expect(new SandboxFinder({ mode: "auto", candidates: found([works]) }).state.wall).toBe("unknown");
  });

  test("is the first that works, and says why it is no better one", async () => {
    const wall = new SandboxFinder({ mode: "auto", candidates: found([fails, works]) });
    expect((await wall.find())?.name).toBe("namespaces");
    expect(wall.state).toEqual({
      mode: "auto",
      wall: "namespaces",
      parts: ["parts of namespaces"],
      problem: "bubblewrap does not work here (setting up uid map: Permission denied).",
    });
  });

  test("is tried once, however many engines start", async () => {
    let looked = 0;
    const wall = new SandboxFinder({
      mode: "require",
      candidates: () => {
        looked += 1;
        return { walls: [works], missing: [] };
      },
    });
    await Promise.all([wall.find(), wall.find()]);
    expect((await wall.find())?.name).toBe("namespaces");
    expect(looked).toBe(1);
  });

  test("is tried again after the system had no process left for the trial", async () => {
    const failures = [Object.assign(new Error("spawn EAGAIN"), { code: "EAGAIN" })];
    const wall = new SandboxFinder({
      mode: "auto",
      candidates: found([works]),
      spawn: (...start) => {
        const failure = failures.pop();
        if (failure) throw failure;
        return spawnEngine(...start);
      },
    });
    expect(await wall.find()).toBeUndefined();
    expect(wall.state.problem).toMatch(/could not be tested: spawn EAGAIN/);
    expect((await wall.find())?.name).toBe("namespaces");
    expect(wall.state.problem).toBeUndefined();
  });

  test("that hangs is said to have no result, once, and is not waited for again", async () => {
    const problems: string[] = [];
    const wall = new SandboxFinder({
      mode: "auto",
      candidates: found([wallOf("bubblewrap", "setInterval(() => {}, 1000)")]),
      trialMs: 100,
      onProblem: (problem) => problems.push(problem),
    });
    expect([await wall.find(), await wall.find()]).toEqual([undefined, undefined]);
    const told = expect.stringMatching(/^bubblewrap does not work here \(no result within 0\.1 s\)\./);
    expect([wall.state.problem, problems]).toEqual([told, [told]]);
  });

  test("may be missing where it is not required, and says what is missing", async () => {
    const problems: string[] = [];
    const wall = new SandboxFinder({
      mode: "auto",
      candidates: found([], ["bubblewrap is not installed."]),
      onProblem: (problem) => problems.push(problem),
    });
    expect(await wall.find()).toBeUndefined();
    // A system without one is not a wall that fails.
    expect(problems).toEqual([]);
    expect(wall.state.wall).toBe("none");
    expect(wall.state.problem).toMatch(/^bubblewrap is not installed\./);
  });

  test("that is required and does not work is an error that says what to do", async () => {
    const wall = new SandboxFinder({ mode: "require", candidates: found([fails]) });
    for (let time = 0; time < 2; time += 1) {
      await expect(wall.find()).rejects.toMatchObject({
        code: "sandbox_unavailable",
        message: expect.stringMatching(/sandbox = require.*uid map: Permission denied/),
      });
    }
  });

  test("is not looked for when it is switched off", async () => {
    const wall = new SandboxFinder({ mode: "off", candidates: neverAsked });
    expect(await wall.find()).toBeUndefined();
    expect(wall.state).toMatchObject({ wall: "none", problem: expect.stringContaining("sandbox = off") });
  });
});

const start = { command: "/opt/node", args: ["engine.js"], env: {}, cwd: "/opt/code" };

test("bubblewrap shows an engine the runtime and its own files, read only, and nothing to write to", () => {
  const wall = bubblewrap({ binary: "/usr/bin/bwrap", runtimeFiles: ["/lib/libc.so.6"], arch: "x64" });
  const { command, args, inputs } = wall.enclose(start, { readable: ["/models/a.gguf", "/opt/code/"] });
  expect(command).toBe("/usr/bin/bwrap");
  const shown = args.flatMap((arg, index) => (arg === "--ro-bind" ? [args[index + 1]] : []));
  expect(shown).toEqual(["/lib/libc.so.6", "/models/a.gguf", "/opt/code/", "/opt/node"]);
  expect(args.filter((arg) => /^--(bind|dev-bind|tmpfs|dev|overlay|share-net)/.test(arg))).toEqual([]);
  for (const needed of [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--die-with-parent",
    "--seccomp",
  ]) {
    expect(args).toContain(needed);
  }
  expect(args.slice(args.indexOf("--"))).toEqual(["--", "/opt/node", "engine.js"]);
  expect(inputs).toHaveLength(1);
});

test("the profile for macOS denies what it does not name, and names files as they are", () => {
  const folder = import.meta.dirname.replaceAll(path.sep, "/");
  const profile = sandboxProfile(["/opt/node", `${folder}/`, '/models/a"b\\c.gguf']);
  expect(profile).toMatch(/^\(version 1\)\n\(deny default\)\n/);
  expect(profile).toContain('(allow process-exec (literal "/opt/node"))');
  expect(profile).toContain(`(allow file-read* (subpath "${folder}"))`);
  expect(profile).toContain('(allow file-read* (literal "/models/a\\"b\\\\c.gguf"))');
  expect(profile).not.toMatch(/file-write|network|process-fork|allow default|target others/);
  expect(sandboxExec().enclose(start, { readable: [] }).args.slice(-2)).toEqual(["/opt/node", "engine.js"]);
});
