import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { findRuntime } from "../../../src/launch/runtime.mjs";
import { need } from "../../support/need.ts";

const LAUNCHER = fileURLToPath(new URL("../../../src/launch/daybreak.mjs", import.meta.url));
const NODE_ALONG = need("Node that came along", "binary" in findRuntime());

/** Module that makes Node look like another runtime, only in the process that gets it as a flag. */
const poseAs = (name: string): string =>
  `data:text/javascript,${encodeURIComponent(
    `Object.defineProperty(process, "versions", { value: { ...process.versions, ${name}: "1.2.3" } });`,
  )}`;

it.skipIf(NODE_ALONG.isMissing).each(["deno", "bun"])(
  `under %s the launcher hands over to the Node that came along, without the other's flags${NODE_ALONG.note}`,
  async (name) => {
    // With the flag the next process would hand over, too, forever.
    const args = ["--import", poseAs(name), LAUNCHER, "--version"];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 120_000 });
    expect(stdout).toMatch(/^\d+\.\d+\.\d+ \(llama\.cpp b\d+\)\n$/);
  },
);
