import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const ROOT = path.join(import.meta.dirname, "../../..");
const FILES = globSync("src/**/*.{ts,tsx,mjs}", { cwd: ROOT }).map((file) => file.replaceAll("\\", "/"));
const OUTSIDE = FILES.filter((file) => !file.startsWith("src/fleet/"));

/** Modules that a file loads statically. */
function loadedBy(file: string): string[] {
  const source = readFileSync(path.join(ROOT, file), "utf8");
  const stated = /^(?:import|export)\s(?!type\s)(?:[^;"']*?\sfrom\s)?\s*["']([^"']+)["']/gm;
  return [...source.matchAll(stated)].map(([, name = ""]) => name);
}

test("without a fleet, neither its code nor the NATS client is loaded", () => {
  const loading = OUTSIDE.filter((file) =>
    loadedBy(file).some((name) => name.startsWith("@nats-io/") || /\/fleet\/(?!.*\.css)/.test(name)),
  );
  expect(loading).toEqual([]);
  expect(FILES.length).toBeGreaterThan(OUTSIDE.length);
});

test("the daemon loads the fleet's code only if a fleet is configured", () => {
  const source = readFileSync(path.join(ROOT, "src/daemon/create-services.ts"), "utf8");
  expect(source).toMatch(
    /config\.fleet\.nats === undefined\s*\? undefined\s*: \(await import\("\.\.\/fleet\//,
  );
});
