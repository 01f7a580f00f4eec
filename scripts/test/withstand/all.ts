#!/usr/bin/env node
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import path from "node:path";
import { readRunOptions } from "./kit/run-options.ts";

const options = readRunOptions(
  `
Attacks a daemon in every way that these scripts know, one after the other: model files, requests, engine messages, a
faulty hub, the messages of a fleet, kills, also in the middle of a batch, a soak.

  node scripts/test/withstand/all.ts [options]

The time and the count are those of each.`,
  { seconds: 60 },
);

const failed: string[] = [];
for (const script of scripts()) {
  const flags = ["--seed", String(options.seed), "--seconds", String(options.seconds)];
  if (Number.isFinite(options.count)) flags.push("--count", String(options.count));
  const child = spawn(process.execPath, [path.join(import.meta.dirname, script), ...flags], {
    stdio: "inherit",
  });
  // An exit code is a number; a signal's null is a failure as well.
  const [code]: unknown[] = await once(child, "exit");
  if (code !== 0) failed.push(script);
}
console.log(failed.length === 0 ? "All promises held." : `Promises were broken: ${failed.join(", ")}`);
process.exitCode = failed.length === 0 ? 0 : 1;

function scripts(): string[] {
  const own = path.basename(import.meta.filename);
  return readdirSync(import.meta.dirname)
    .filter((name) => name.endsWith(".ts") && name !== own)
    .toSorted();
}
