import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { platformOf } from "../../../scripts/release/platform-manifests.ts";
import { startScript } from "../../../scripts/release/start-scripts.ts";

const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak start-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe.skipIf(process.platform === "win32")("the start script of an archive", () => {
  const home = path.join(folder, "unpacked");
  const platform = platformOf("linux-x64");
  const { name, text } = startScript(platform);
  const node = path.join(home, "node_modules", platform.node, platform.nodeBinary);
  mkdirSync(path.dirname(node), { recursive: true });
  writeFileSync(node, '#!/bin/sh\nprintf "%s\\n" "$@"\n');
  writeFileSync(path.join(home, name), text);
  for (const file of [node, path.join(home, name)]) chmodSync(file, 0o755);
  mkdirSync(path.join(folder, "bin"));
  beforeAll(() => {
    symlinkSync(path.join(home, name), path.join(folder, "absolute"));
    symlinkSync("../absolute", path.join(folder, "bin", "relative"));
  });

  it.each(["unpacked/daybreak", "absolute", "bin/relative"])(
    "runs the launcher under the Node beside it, started as %s",
    (start) => {
      const said = execFileSync(path.join(folder, start), ["run", "two words", ""], { encoding: "utf8" });
      expect(said.split("\n").slice(0, -1)).toEqual([
        path.join(home, "dist/src/launch/daybreak.mjs"),
        "run",
        "two words",
        "",
      ]);
    },
  );
});

it("is a batch file for Windows", () => {
  const { name, text } = startScript(platformOf("win32-x64"));
  expect(name).toBe("daybreak.cmd");
  expect(text).toContain(String.raw`"%~dp0node_modules\@daybreak-llm\node-win32-x64\bin\node.exe"`);
  expect(text.split("\r\n").length).toBe(text.split("\n").length);
});
