import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = path.join(import.meta.dirname, "../../..");

/** Modules from the top: each may import those behind it, so there is no cycle. */
const MODULES = [
  "cli",
  "ui",
  "daemon",
  "fleet",
  "tab",
  "experiments",
  "api",
  "http",
  "inference",
  "batches",
  "models",
  "engine",
  "grammar",
  "config",
  "events",
  "metrics",
  "files",
  "json",
  "async",
  "errors",
  "machine",
  "launch",
  "wasm",
];

/** Modules without which the daemon serves completions. */
const OPTIONAL: ReadonlySet<string> = new Set([
  "cli",
  "ui",
  "fleet",
  "tab",
  "experiments",
  "batches",
  "grammar",
]);

/** Modules that http may import: it knows neither models nor engines. */
const BELOW_HTTP = ["config", "json", "async", "errors"];

/** Schemas of answers and events that the page and the command line read. */
const WIRE = "src/api/wire/";
/** Files and packages that they may load, directly or not. */
const BELOW_WIRE =
  /^(?:zod$|src\/(?:api\/wire|http\/input|engine\/protocol|json|errors)\/|src\/engine\/gpu\/gpu-report\.ts$)/;

/** Modules that also run in a page, with all that they import. */
const IN_PAGES = new Set(["tab", "experiments", "api", "inference", "grammar"]);
/** Packages that run in a page. */
const PAGE_PACKAGES = new Set([
  "zod",
  "hono",
  "pino",
  "hono/router/trie-router",
  "@wllama/wllama/esm/index.js",
  "@noble/hashes/sha2.js",
  "@noble/hashes/utils.js",
  "core-js/es/disposable-stack/index.js",
  "core-js/es/symbol/dispose.js",
]);
/** Files that pages never load: a page serves no WebSocket. */
const SERVER_ALONE = ["src/api/native/chat-socket.ts"];

interface Import {
  readonly from: string;
  /** A file from the root of the repository, or the name of a module. */
  readonly to: string;
  /** False for types, which are erased. */
  readonly isValue: boolean;
  readonly isLazy: boolean;
}

const IMPORT =
  /^(?:import|export)\s(?:(type)\s)?(?:[^;"']*?\sfrom\s)?\s*["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']/gm;

function importsOf(file: string): Import[] {
  const source = readFileSync(path.join(ROOT, file), "utf8");
  return [...source.matchAll(IMPORT)].map(([, type, stated, called]) => {
    const name = stated ?? called ?? "";
    const to = name.startsWith(".") ? path.posix.join(path.posix.dirname(file), name) : name;
    return { from: file, to, isValue: type === undefined, isLazy: called !== undefined };
  });
}

const FILES = globSync("{src,wasm}/**/*.{ts,tsx,mjs,js}", { cwd: ROOT }).map((file) =>
  file.replaceAll("\\", "/"),
);
const IMPORTS = FILES.flatMap(importsOf);
const INSIDE = IMPORTS.filter(({ to }) => /^(src|wasm)\//.test(to));

function moduleOf(file: string): string {
  const [top = "", module = ""] = file.split("/");
  return top === "src" ? module : top;
}

/** API of a file in the folder of one; the folder wire is shared by all. */
function apiOf(file: string): string | undefined {
  return /^src\/api\/(?!wire\/)([^/]+)\//.exec(file)?.[1];
}

function describeImport({ from, to }: Import): string {
  return `${from} imports ${to}`;
}

describe("the modules of src", () => {
  test("are all in their order", () => {
    expect([...new Set(FILES.map(moduleOf))].filter((module) => !MODULES.includes(module))).toEqual([]);
    expect(INSIDE.length).toBeGreaterThan(FILES.length);
  });

  test("import no module above them", () => {
    const upward = INSIDE.filter(
      ({ from, to }) => MODULES.indexOf(moduleOf(to)) < MODULES.indexOf(moduleOf(from)),
    );
    expect(upward.map(describeImport)).toEqual([]);
  });

  test("load each optional module in one place at most, by import() or in a thread", () => {
    const loads = INSIDE.filter(
      ({ from, to, isValue }) => isValue && OPTIONAL.has(moduleOf(to)) && !OPTIONAL.has(moduleOf(from)),
    );
    expect(loads.map((each) => `${describeImport(each)}${each.isLazy ? " lazily" : ""}`).toSorted()).toEqual([
      "src/daemon/create-services.ts imports src/batches/local-batches.ts lazily",
      "src/daemon/create-services.ts imports src/fleet/start-fleet.ts lazily",
      "src/daemon/grammars/make-grammars.ts imports src/grammar/grammar-work.ts",
      "src/inference/schema-compiler.ts imports src/grammar/grammar-work.ts lazily",
    ]);
  });

  test("load the fleet and the NATS client only if a fleet is configured", () => {
    const clients = IMPORTS.filter(({ to }) => to.startsWith("@nats-io/"));
    expect(clients.filter(({ from }) => moduleOf(from) !== "fleet")).toEqual([]);
    const source = readFileSync(path.join(ROOT, "src/daemon/create-services.ts"), "utf8");
    expect(source).toMatch(
      /config\.fleet\.nats === undefined\s*\? undefined\s*: \(await import\("\.\.\/fleet\//,
    );
  });

  test("an API imports no other API", () => {
    const across = INSIDE.filter(({ from, to }) => {
      const other = apiOf(to);
      return moduleOf(from) === "api" && other !== undefined && other !== apiOf(from);
    });
    expect(across.map(describeImport)).toEqual([]);
  });

  test("ui and cli import nothing of api but its wire schemas", () => {
    const beyond = INSIDE.filter(
      ({ from, to }) =>
        ["ui", "cli"].includes(moduleOf(from)) && moduleOf(to) === "api" && !to.startsWith(WIRE),
    );
    expect(beyond.map(describeImport)).toEqual([]);
  });

  test("wire schemas load only other schemas: no routes, services or settings", () => {
    const reached = new Set(FILES.filter((file) => file.startsWith(WIRE)));
    for (const file of reached) {
      for (const { to } of IMPORTS.filter(({ from, isValue }) => from === file && isValue)) reached.add(to);
    }
    const loaded = [...reached].filter((file) => !BELOW_WIRE.test(file));
    expect(loaded).toEqual([]);
  });

  test("http knows neither models nor engines", () => {
    const beyond = INSIDE.filter(
      ({ from, to }) => moduleOf(from) === "http" && !["http", ...BELOW_HTTP].includes(moduleOf(to)),
    );
    expect(beyond.map(describeImport)).toEqual([]);
  });
});

describe("tab, experiments, api, inference and grammar", () => {
  test("run in a page: neither they nor what they import need Node", () => {
    const reached = new Set(
      FILES.filter((file) => IN_PAGES.has(moduleOf(file)) && !SERVER_ALONE.includes(file)),
    );
    const needNode: string[] = [];
    for (const file of reached) {
      for (const each of IMPORTS.filter(({ from, isValue }) => from === file && isValue)) {
        if (/^(src|wasm)\//.test(each.to)) {
          if (!SERVER_ALONE.includes(each.to)) reached.add(each.to);
        } else if (!PAGE_PACKAGES.has(each.to)) needNode.push(describeImport(each));
      }
    }
    expect(needNode).toEqual([]);
    const withBuffer = [...reached].filter((file) =>
      /\bBuffer[.(]/.test(readFileSync(path.join(ROOT, file), "utf8")),
    );
    expect(withBuffer, "uses Node's global Buffer").toEqual([]);
  });

  test("SERVER_ALONE has existing files only", () => {
    expect(SERVER_ALONE.filter((file) => !FILES.includes(file))).toEqual([]);
  });
});
