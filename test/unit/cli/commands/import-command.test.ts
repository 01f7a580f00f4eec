import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type FakeRoutes, ndjson, startFakeDaemon } from "../fake-daemon.ts";
import { runCli } from "../run-cli.ts";

const about = { size_bytes: 1_200_000 };
const lines = [
  { status: "reading", folder: "/models", models: 3 },
  {
    status: "imported",
    name: "a:1b",
    alias: "a:1b",
    files: "linked",
    ...about,
    notes: ["PARSER x has no effect."],
  },
  { status: "skipped", name: "b:1b", reason: "its manifest is damaged" },
  { status: "copying", name: "c:1b", copied_bytes: 1, total_bytes: 2 },
  { status: "present", name: "c:1b", alias: "c:1b-2", files: "in place", ...about },
  { status: "success" },
];
const routes = { "POST /api/models/import": ndjson(...lines) };

async function against(daemonRoutes: FakeRoutes, args: string[], env: Record<string, string> = {}) {
  await using daemon = await startFakeDaemon(daemonRoutes);
  const run = await runCli([...args, "--url", daemon.url], { env });
  return { ...run, bodies: daemon.requests.map(({ body }) => body) };
}

describe("import", () => {
  it("prints the imported models and how their files are stored", async () => {
    const { code, stdout, stderr } = await against(routes, ["import", "--from", "/models"]);
    expect(code).toBe(0);
    expect(stdout).toBe(
      [
        "NAME    SIZE    FILES             RESULT         FROM",
        "a:1b    1.2 MB  linked            imported       a:1b",
        "c:1b-2  1.2 MB  used where it is  there already  c:1b",
        "",
      ].join("\n"),
    );
    expect(stderr.split("\n")).toEqual([
      "Importing from /models ...",
      "Left out b:1b: its manifest is damaged.",
      "Note on a:1b: PARSER x has no effect.",
      "What is used where it is goes when its program deletes it; --copy makes copies instead.",
      "1 imported, 1 there already, 1 left out.",
      "",
    ]);
  });

  it("fails when there is nothing to import", async () => {
    const reading = { status: "reading", folder: "/models", models: 0 };
    const none = { "POST /api/models/import": ndjson(reading, { status: "success" }) };
    const { code, stdout, stderr } = await against(none, ["import", "--from", "/models"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("There are no GGUF files in /models.");
    const damaged = { status: "skipped", name: "b:1b", reason: "its manifest is damaged" };
    const leftOut = { "POST /api/models/import": ndjson(reading, damaged, { status: "success" }) };
    expect((await against(leftOut, ["import", "--from", "/models"])).code).toBe(0);
  });

  it("prints each step as JSON", async () => {
    const { stdout } = await against(routes, ["import", "--from", "/models", "--json"]);
    const printed = stdout
      .trimEnd()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    expect(printed).toEqual(lines);
  });

  it("sends the store's folder in this user's environment, and the models", async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-import-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const own = await against(routes, ["import", "a", "b", "--copy", "--from", "ollama"], {
      OLLAMA_MODELS: folder,
    });
    expect(own.bodies).toEqual([{ from: folder, models: ["a", "b"], copy: true, stream: true }]);
    const none = await against(routes, ["import", "--from", "ollama"], { OLLAMA_MODELS: "/nonexistent" });
    expect(none.bodies).toEqual([{ from: "ollama", stream: true }]);
    const relative = await against(routes, ["import", "--from", "."]);
    expect(relative.bodies).toEqual([{ from: process.cwd(), stream: true }]);
  });

  it("requires --from", async () => {
    const { code, stderr } = await against(routes, ["import"]);
    expect(code).toBe(2);
    expect(stderr).toContain("--from");
  });
});
