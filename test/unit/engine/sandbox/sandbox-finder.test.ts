import path from "node:path";
import { describe, expect, test } from "vitest";
import { spawnEngine } from "../../../../src/engine/launch.ts";
import { bubblewrap, type Sandbox, sandboxExec } from "../../../../src/engine/sandbox/sandboxes.ts";
import { type Candidates, SandboxFinder } from "../../../../src/engine/sandbox/sandbox-finder.ts";

/** A sandbox that starts another program instead of the requested one. */
function sandboxRunning(name: Sandbox["name"], script: string): Sandbox {
  return {
    name,
    parts: [`parts of ${name}`],
    enclose: (start) => ({ ...start, command: process.execPath, args: ["--eval", script] }),
  };
}

/** Program that passes the trial: it echoes its input. */
const ECHO =
  'process.stdin.once("data", (data) => { require("node:fs").writeSync(3, data); process.exit(0); })';

const works = sandboxRunning("namespaces", ECHO);
const fails = sandboxRunning(
  "bubblewrap",
  'console.error("setting up uid map: Permission denied"); process.exit(1)',
);

const found = (sandboxes: Sandbox[], missing: string[] = []): (() => Candidates) => {
  return () => ({ sandboxes, missing });
};

function neverAsked(): Candidates {
  throw new Error("looked for");
}

describe("the sandbox around engines", () => {
  test("is unknown before it has been tried", () => {
    expect(new SandboxFinder({ mode: "auto", candidates: found([works]) }).state.wall).toBe("unknown");
  });

  test("is the first that works, with an explanation why better ones do not", async () => {
    const finder = new SandboxFinder({ mode: "auto", candidates: found([fails, works]) });
    expect((await finder.find())?.name).toBe("namespaces");
    expect(finder.state).toEqual({
      mode: "auto",
      wall: "namespaces",
      parts: ["parts of namespaces"],
      problem: "bubblewrap does not work here (setting up uid map: Permission denied).",
    });
  });

  test("is tried once for several engines", async () => {
    let looked = 0;
    const finder = new SandboxFinder({
      mode: "require",
      candidates: () => {
        looked += 1;
        return { sandboxes: [works], missing: [] };
      },
    });
    await Promise.all([finder.find(), finder.find()]);
    expect((await finder.find())?.name).toBe("namespaces");
    expect(looked).toBe(1);
  });

  test("is tried again after the system could not start a process", async () => {
    const failures = [Object.assign(new Error("spawn EAGAIN"), { code: "EAGAIN" })];
    const finder = new SandboxFinder({
      mode: "auto",
      candidates: found([works]),
      spawn: (...start) => {
        const failure = failures.pop();
        if (failure) throw failure;
        return spawnEngine(...start);
      },
    });
    expect(await finder.find()).toBeUndefined();
    expect(finder.state.problem).toMatch(/could not be tested: spawn EAGAIN/);
    expect((await finder.find())?.name).toBe("namespaces");
    expect(finder.state.problem).toBeUndefined();
  });

  test("that hangs is reported once and not tried again", async () => {
    const problems: string[] = [];
    const finder = new SandboxFinder({
      mode: "auto",
      candidates: found([sandboxRunning("bubblewrap", "setInterval(() => {}, 1000)")]),
      trialMs: 100,
      onProblem: (problem) => problems.push(problem),
    });
    expect([await finder.find(), await finder.find()]).toEqual([undefined, undefined]);
    const message = expect.stringMatching(/^bubblewrap does not work here \(no result within 0\.1 s\)\./);
    expect([finder.state.problem, problems]).toEqual([message, [message]]);
  });

  test("may be missing if it is not required, with an explanation", async () => {
    const problems: string[] = [];
    const finder = new SandboxFinder({
      mode: "auto",
      candidates: found([], ["bubblewrap is not installed."]),
      onProblem: (problem) => problems.push(problem),
    });
    expect(await finder.find()).toBeUndefined();
    // onProblem is not called on a system without any sandbox.
    expect(problems).toEqual([]);
    expect(finder.state.wall).toBe("none");
    expect(finder.state.problem).toMatch(/^bubblewrap is not installed\./);
  });

  test("that is required and does not work is an error with advice", async () => {
    const finder = new SandboxFinder({ mode: "require", candidates: found([fails]) });
    for (let time = 0; time < 2; time += 1) {
      await expect(finder.find()).rejects.toMatchObject({
        code: "sandbox_unavailable",
        message: expect.stringMatching(/sandbox = require.*uid map: Permission denied/),
      });
    }
  });

  test("is not tried when it is turned off", async () => {
    const finder = new SandboxFinder({ mode: "off", candidates: neverAsked });
    expect(await finder.find()).toBeUndefined();
    expect(finder.state).toMatchObject({ wall: "none", problem: expect.stringContaining("sandbox = off") });
  });
});

const start = { command: "/opt/node", args: ["engine.js"], env: {}, cwd: "/opt/code" };

test("in bubblewrap an engine sees only the runtime and its own files, read-only", () => {
  const sandbox = bubblewrap({ binary: "/usr/bin/bwrap", runtimeFiles: ["/lib/libc.so.6"], arch: "x64" });
  const { command, args, inputs } = sandbox.enclose(start, ["/models/a.gguf", "/opt/code/"]);
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

test("the macOS profile denies everything that it does not name, and quotes file names", () => {
  const folder = import.meta.dirname.replaceAll(path.sep, "/");
  const { args } = sandboxExec().enclose(start, [`${folder}/`, '/models/a"b\\c.gguf']);
  const profile = args[1];
  expect(profile).toMatch(/^\(version 1\)\n\(deny default\)\n/);
  expect(profile).toContain('(allow process-exec (literal "/opt/node"))');
  expect(profile).toContain(`(allow file-read* (subpath "${folder}"))`);
  expect(profile).toContain('(allow file-read* (literal "/models/a\\"b\\\\c.gguf"))');
  expect(profile).not.toMatch(/file-write|network|process-fork|allow default|target others/);
  expect(args.slice(-2)).toEqual(["/opt/node", "engine.js"]);
});
