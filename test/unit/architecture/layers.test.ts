import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = path.join(import.meta.dirname, "../../..");

/** The rooms of the house from the top: each may import those behind it, so there is no cycle. */
const ROOMS = [
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

/** What the kit of the HTTP side may know: nothing of models, engines or what is computed with them. */
const BELOW_HTTP = ["config", "json", "async", "errors"];

/** These also run in a page, with all that they import. */
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
/** A page serves no WebSocket, so what does may use the server's. */
const SERVER_ALONE = ["src/api/native/chat-socket.ts"];

interface Import {
  readonly from: string;
  /** A file from the root of the repository, or the name of a module. */
  readonly to: string;
  /** False for what is gone when the program runs. */
  readonly isValue: boolean;
}

const IMPORT =
  /^(?:import|export)\s(?:(type)\s)?(?:[^;"']*?\sfrom\s)?\s*["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']/gm;

function importsOf(file: string): Import[] {
  const source = readFileSync(path.join(ROOT, file), "utf8");
  return [...source.matchAll(IMPORT)].map(([, type, stated, called]) => {
    const name = stated ?? called ?? "";
    const to = name.startsWith(".") ? path.posix.join(path.posix.dirname(file), name) : name;
    return { from: file, to, isValue: type === undefined };
  });
}

const FILES = globSync("{src,wasm}/**/*.{ts,mjs,js}", { cwd: ROOT }).map((file) =>
  file.replaceAll("\\", "/"),
);
const IMPORTS = FILES.flatMap(importsOf);
const INSIDE = IMPORTS.filter(({ to }) => /^(src|wasm)\//.test(to));

function roomOf(file: string): string {
  const [top = "", room = ""] = file.split("/");
  return top === "src" ? room : top;
}

/** The dialect of a file in a dialect's folder. */
function dialectOf(file: string): string | undefined {
  return /^src\/api\/([^/]+)\//.exec(file)?.[1];
}

function told({ from, to }: Import): string {
  return `${from} imports ${to}`;
}

describe("the rooms of src", () => {
  test("are all in their order", () => {
    expect([...new Set(FILES.map(roomOf))].filter((room) => !ROOMS.includes(room))).toEqual([]);
    expect(INSIDE.length).toBeGreaterThan(FILES.length);
  });

  test("import no room above them", () => {
    const upward = INSIDE.filter(({ from, to }) => ROOMS.indexOf(roomOf(to)) < ROOMS.indexOf(roomOf(from)));
    expect(upward.map(told)).toEqual([]);
  });

  test("a dialect imports no other dialect", () => {
    const across = INSIDE.filter(({ from, to }) => {
      const other = dialectOf(to);
      return roomOf(from) === "api" && other !== undefined && other !== dialectOf(from);
    });
    expect(across.map(told)).toEqual([]);
  });

  test("the HTTP kit knows neither models nor engines", () => {
    const beyond = INSIDE.filter(
      ({ from, to }) => roomOf(from) === "http" && !["http", ...BELOW_HTTP].includes(roomOf(to)),
    );
    expect(beyond.map(told)).toEqual([]);
  });
});

describe("tab, experiments, dialects and inference", () => {
  test("run in a page: neither they nor what they import need Node", () => {
    const reached = new Set(
      FILES.filter((file) => IN_PAGES.has(roomOf(file)) && !SERVER_ALONE.includes(file)),
    );
    const ofServers: string[] = [];
    for (const file of reached) {
      for (const each of IMPORTS.filter(({ from, isValue }) => from === file && isValue)) {
        if (/^(src|wasm)\//.test(each.to)) {
          if (!SERVER_ALONE.includes(each.to)) reached.add(each.to);
        } else if (!PAGE_PACKAGES.has(each.to)) ofServers.push(told(each));
      }
    }
    expect(ofServers).toEqual([]);
    const withBuffer = [...reached].filter((file) =>
      /\bBuffer[.(]/.test(readFileSync(path.join(ROOT, file), "utf8")),
    );
    expect(withBuffer, "uses Node's global Buffer").toEqual([]);
  });

  test("leave out only what serves", () => {
    expect(SERVER_ALONE.filter((file) => !FILES.includes(file))).toEqual([]);
  });
});
