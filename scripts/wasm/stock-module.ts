import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { z } from "zod";
import { sha256Hex } from "../../wasm/engine-image.ts";
import { customSection, parseModule, type WasmModule } from "../../wasm/linker/wasm-module.ts";
import { npmPack, unpack } from "../release/npm-pack.ts";
import { decodeBody, type Instruction } from "./instructions.ts";

const PACKAGE = "@wllama/wllama";
/** Files of the package that tell of its build of llama.cpp. */
const FILES = {
  manifest: "package.json",
  wasm: "esm/wasm/wllama.wasm",
  script: "esm/index.js",
  names: "src/wasm/source-map.ts",
};

const NO_NAME = 0xffff;
const IN_NAME_SECTION = 1;

/** llama.cpp's WebAssembly with what is needed to find functions in it. */
export interface StockModule {
  /** Version of the package. */
  readonly version: string;
  /** For example "b11364"; empty when the package does not tell. */
  readonly llamaCpp: string;
  readonly sha256: string;
  readonly module: WasmModule;
  /** Names of functions by index; undefined where the name is unknown. */
  readonly names: readonly (string | undefined)[];
  /** Indices of the functions that have a name. */
  named(name: string): readonly number[];
  /** Instructions of a function, decoded once. */
  code(index: number): readonly Instruction[];
}

/** The package that is installed, in its folder. */
export function installedFolder(): string {
  const entry = createRequire(import.meta.url).resolve(`${PACKAGE}/package.json`);
  return path.dirname(entry);
}

/**
 * Fetches another version of the package from the registry into a folder; nothing of it is run.
 * @returns the folder that it was unpacked into
 */
export async function fetchVersion(version: string, folder: string): Promise<string> {
  const { tarball } = await npmPack(`${PACKAGE}@${version}`, folder);
  const wanted = new Set(Object.values(FILES));
  await unpack(tarball, folder, (file) => wanted.has(file));
  return folder;
}

/**
 * Reads an unpacked package.
 * @throws Error when it holds no WebAssembly where it is expected
 */
export async function readPackage(folder: string): Promise<StockModule> {
  const read = (file: string): Promise<string> => readFile(path.join(folder, file), "utf8").catch(() => "");
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(await read(FILES.manifest)));
  const bytes = await readFile(path.join(folder, FILES.wasm)).catch((cause: unknown) => {
    throw new Error(`${PACKAGE} ${version} has no ${FILES.wasm}, so this script cannot read it.`, { cause });
  });
  const llamaCpp = /LIBLLAMA_VERSION = "(b\d+)/.exec(await read(FILES.script))?.[1] ?? "";
  return stockModule(bytes, await read(FILES.names), { version, llamaCpp });
}

/**
 * @param symbolMap the package's, as its source has it; empty: names are those of the module's name section
 */
export async function stockModule(
  bytes: Uint8Array,
  symbolMap: string,
  { version, llamaCpp }: { version: string; llamaCpp: string },
): Promise<StockModule> {
  const module = parseModule(bytes);
  const names = symbolMap === "" ? namesIn(module) : namesOfMap(symbolMap);
  const byName = Map.groupBy(names.keys(), (index) => names[index]);
  const decoded = new Map<number, readonly Instruction[]>();
  const code = (index: number): readonly Instruction[] => {
    const known = decoded.get(index) ?? decodeBody(module.bodies[index - module.importedFunctions]!);
    decoded.set(index, known);
    return known;
  };
  const sha256 = await sha256Hex(bytes);
  return { version, llamaCpp, sha256, module, names, named: (name) => byName.get(name) ?? [], code };
}

/** Reads the symbol map of the package: a table of names, and an index into it for each function. */
function namesOfMap(source: string): (string | undefined)[] {
  const packed = /default[^\n]{0,40}?['"`]([A-Za-z0-9+/=]{1000,})/.exec(source)?.[1];
  if (packed === undefined) throw new Error("The package's symbol map is not in the format that is known.");
  const map = gunzipSync(Buffer.from(packed, "base64"));
  const [first, functions, count] = [map.readUInt32LE(0), map.readUInt32LE(4), map.readUInt32LE(8)];
  const table: string[] = [];
  let at = 12;
  for (let index = 0; index < count; index++) {
    const end = at + 1 + map.readUInt8(at);
    table.push(map.toString("utf8", at + 1, end));
    at = end;
  }
  const names: (string | undefined)[] = Array.from({ length: first });
  for (let index = 0; index < functions; index++) {
    const which = map.readUInt16LE(at + 2 * index);
    names.push(which === NO_NAME ? undefined : table[which]);
  }
  return names;
}

function namesIn(module: WasmModule): (string | undefined)[] {
  const names: (string | undefined)[] = Array.from({
    length: module.importedFunctions + module.bodies.length,
  });
  const reader = customSection(module, "name");
  if (!reader) return names;
  while (!reader.done) {
    const kind = reader.u8();
    const end = reader.uleb() + reader.offset;
    if (kind === IN_NAME_SECTION) {
      for (let count = reader.uleb(); count > 0; count--) names[reader.uleb()] = reader.name();
    }
    reader.offset = end;
  }
  return names;
}
