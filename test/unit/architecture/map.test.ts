import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const ROOT = path.join(import.meta.dirname, "../../..");

/** Files and folders of the repository that a page names in backticks. */
function namedIn(page: string): string[] {
  const text = readFileSync(path.join(ROOT, page), "utf8");
  const names = text.matchAll(/`((?:src|wasm|test|scripts|docs|models|configs|\.ci)\/[\w./-]*)`/g);
  return [...new Set([...names].map(([, name = ""]) => name))];
}

test.each(["CONTRIBUTING.md", "docs/architecture.md", "docs/comparison.md"])(
  "every file that %s names exists",
  (page) => {
    const named = namedIn(page);
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((name) => !existsSync(path.join(ROOT, name)))).toEqual([]);
  },
);

test.each(["CONTRIBUTING.md", "docs/architecture.md"])("every function that %s names exists", (page) => {
  const text = readFileSync(path.join(ROOT, page), "utf8");
  const names = [...text.matchAll(/`(\w+)\([^`]*\)`/g)].map(([, name = ""]) => name);
  expect(names.length).toBeGreaterThan(0);
  const sources = globSync("{src,test}/**/*.{ts,tsx,mjs}", { cwd: ROOT });
  const code = sources.map((file) => readFileSync(path.join(ROOT, file), "utf8")).join("\n");
  const missing = names.filter(
    (name) => !new RegExp(`\\b(?:function\\*? |const |class |  )${name}\\b`).test(code),
  );
  expect(missing.filter((name) => name !== "import")).toEqual([]);
});

test.each([
  ["docs/security.md", "scripts/test/withstand", "all.ts", ""],
  ["CONTRIBUTING.md", "scripts/bench", "", "scripts/bench/"],
])("%s names every script of %s", (page, folder, except, prefix) => {
  const text = readFileSync(path.join(ROOT, page), "utf8");
  const scripts = readdirSync(path.join(ROOT, folder)).filter(
    (name) => name.endsWith(".ts") && name !== except,
  );
  expect(scripts.length).toBeGreaterThan(10);
  expect(scripts.filter((name) => !text.includes(`\`${prefix}${name}\``))).toEqual([]);
});
