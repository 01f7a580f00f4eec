import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = path.join(import.meta.dirname, "../../..");
const MAX_LINES = 400;
/** Below this, a file is rarely a whole thought. */
const MIN_LINES = 40;
const MAX_SMALL_FILES = 45;
/** A file and its only importer with fewer lines together are one thought. */
const ONE_THOUGHT_LINES = 250;

/** Small files by the reason why they stand alone. */
const SMALL_FILES: Readonly<Record<string, readonly string[]>> = {
  "entry of a process, page or package": [
    "src/daemon/grammars/make-grammars.ts",
    "src/engine/host/engine-main.ts",
    "src/engine/sandbox/trial-process.ts",
    "src/tab/browser-entry.ts",
    "src/ui/chat/pdf-text.ts",
  ],
  "loaded fast, alone, or before everything else": [
    "src/cli/commands/embed.ts",
    "src/cli/commands/serve.ts",
    "src/daemon/package-version.ts",
    "src/launch/home-folder.mjs",
    "src/launch/keep-compiled-code.mjs",
    "src/launch/skip-languages.mjs",
  ],
  "types of a package that has none": ["src/metrics/prom-client-parts.d.ts"],
  "without what its neighbors load: a DOM, signals or Node": [
    "src/engine/browser/compat-build.ts",
    "src/models/slots/saved-header.ts",
  ],
  "used by several files, and part of none": [
    "src/api/ollama/ollama-api.ts",
    "src/api/ollama/ollama-error.ts",
    "src/grammar/json-value.ts",
    "src/http/middleware/answer-warnings.ts",
    "src/inference/default-sampling.ts",
    "src/inference/tool-calls/tool-call-ids.ts",
    "src/machine/user-limits.ts",
    "src/tab/older-browsers.ts",
  ],
};

/** Pairs of a file and its only importer that stay apart, by the reason. */
const APART: Readonly<Record<string, readonly string[]>> = {
  "routes of an API, listed in its file": [
    "src/api/llama-server/apply-template.ts < llama-server-api.ts",
    "src/api/llama-server/vector-routes.ts < llama-server-api.ts",
    "src/api/management/default-model-routes.ts < management-api.ts",
    "src/api/management/event-routes.ts < management-api.ts",
    "src/api/management/hub-routes.ts < management-api.ts",
    "src/api/management/import-routes.ts < management-api.ts",
    "src/api/management/model-file-routes.ts < management-api.ts",
    "src/api/management/slot-routes.ts < management-api.ts",
    "src/api/management/system-routes.ts < management-api.ts",
    "src/api/native/experiment.ts < native-api.ts",
    "src/api/native/native-generate.ts < native-api.ts",
    "src/api/ollama/information-routes.ts < ollama-api.ts",
    "src/api/ollama/store-routes.ts < ollama-api.ts",
    "src/api/openai/model-list.ts < openai-api.ts",
  ],
  "loaded by another process or lazily": [
    "src/engine/host/engine-files.ts < serve-daemon.ts",
    "src/launch/choose-runtime.mjs < daybreak.mjs",
  ],
  "views and parts of the page": ["src/ui/models/from-hub.tsx < browser-models.tsx"],
  "one of several platforms, types or steps": [
    "src/grammar/build/build-array.ts < build-value.ts",
    "src/inference/tool-calls/tool-prompt.ts < resolve-tools.ts",
  ],
};

const FILES = globSync("{src,wasm}/**/*.{ts,tsx,mjs}", { cwd: ROOT })
  .map((file) => file.replaceAll("\\", "/"))
  .toSorted();
const TEXTS = new Map(FILES.map((file) => [file, readFileSync(path.join(ROOT, file), "utf8")]));
const IMPORT =
  /^(?:import|export)\s(?:[^;"']*?\sfrom\s)?\s*["'](\.[^"']+)["']|\bimport\(\s*["'](\.[^"']+)["']/gm;

/** Imported files of each file, types included, and whether they are loaded lazily. */
const IMPORTS = new Map(
  [...TEXTS].map(([file, text]) => [
    file,
    [...text.matchAll(IMPORT)].map(([, stated, lazy = ""]) => ({
      to: path.posix.join(path.posix.dirname(file), stated ?? lazy),
      isLazy: stated === undefined,
    })),
  ]),
);

function linesOf(file: string): number {
  return (TEXTS.get(file) ?? "").split("\n").length - 1;
}

function inSrc(file: string): boolean {
  return file.startsWith("src/");
}

describe("files of src", () => {
  test(`have at most ${MAX_LINES} lines`, () => {
    expect(FILES.filter((file) => inSrc(file) && linesOf(file) > MAX_LINES)).toEqual([]);
  });

  test(`have at least ${MIN_LINES} lines, but for at most ${MAX_SMALL_FILES} with a reason`, () => {
    const small = FILES.filter((file) => inSrc(file) && linesOf(file) < MIN_LINES);
    expect(small).toEqual(Object.values(SMALL_FILES).flat().toSorted());
    expect(small.length).toBeLessThanOrEqual(MAX_SMALL_FILES);
  });

  test("are joined with their only importer where both are one thought", () => {
    const importers = new Map<string, { from: string; isLazy: boolean }[]>();
    for (const [from, imports] of IMPORTS) {
      for (const { to, isLazy } of imports)
        importers.set(to, [...(importers.get(to) ?? []), { from, isLazy }]);
    }
    const pairs = [...importers].flatMap(([file, [only, ...others]]) =>
      only === undefined ||
      others.length > 0 ||
      only.isLazy ||
      path.posix.dirname(only.from) !== path.posix.dirname(file) ||
      !inSrc(file) ||
      linesOf(file) + linesOf(only.from) >= ONE_THOUGHT_LINES
        ? []
        : [`${file} < ${path.posix.basename(only.from)}`],
    );
    expect(pairs.toSorted()).toEqual(Object.values(APART).flat().toSorted());
  });

  test("do not import one another's types in a circle", () => {
    expect(cycles()).toEqual([]);
  });
});

/** Groups of files that reach one another by imports, found by Tarjan's algorithm. */
function cycles(): string[] {
  const found: string[] = [];
  const numbers = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const visit = (file: string): void => {
    numbers.set(file, numbers.size);
    lowest.set(file, numbers.size - 1);
    stack.push(file);
    for (const { to, isLazy } of IMPORTS.get(file) ?? []) {
      if (isLazy || !IMPORTS.has(to)) continue;
      if (!numbers.has(to)) visit(to);
      if (stack.includes(to)) lowest.set(file, Math.min(lowest.get(file) ?? 0, lowest.get(to) ?? 0));
    }
    if (lowest.get(file) !== numbers.get(file)) return;
    const group = stack.splice(stack.indexOf(file));
    if (group.length > 1) found.push(group.toSorted().join(" "));
  };
  for (const file of FILES) if (!numbers.has(file)) visit(file);
  return found;
}
