import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { STOCK_WASM_PATH } from "../../src/engine/engine-image.ts";
import { buildEngineImage } from "../../wasm/engine-image.ts";
import { buildBrowser, COMPAT } from "./build-browser.ts";

/** Entry of the package for browsers, from which its types are made. */
const ENTRY = "src/tab/browser-entry.ts";

/** Writes all that the package exports as daybreak/browser: scripts, WebAssembly and types. */
export async function packageBrowser(root: string, folder: string): Promise<void> {
  await buildBrowser(folder);
  const kernels = readFileSync(path.join(root, "wasm/kernels.o"));
  writeFileSync(
    path.join(folder, "engine.wasm"),
    await buildEngineImage(readFileSync(STOCK_WASM_PATH), kernels),
  );
  cpSync(path.join(COMPAT, "wllama.wasm"), path.join(folder, "engine-compat.wasm"));
  writeTypes(root, path.join(folder, "types"));
}

/** Declarations of the entry and of what it names, no others. */
function writeTypes(root: string, folder: string): void {
  const made = mkdtempSync(path.join(os.tmpdir(), "daybreak-types-"));
  try {
    const config = path.join(made, "tsconfig.json");
    const compilerOptions = {
      noEmit: false,
      noCheck: true,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: root,
      outDir: made,
      types: [],
    };
    const extended = path.join(root, "tsconfig.json");
    writeFileSync(
      config,
      JSON.stringify({ extends: extended, compilerOptions, files: [path.join(root, ENTRY)], include: [] }),
    );
    const compiler = path.join(root, "node_modules/typescript/bin/tsc");
    const { status } = spawnSync(process.execPath, [compiler, "--project", config], { stdio: "inherit" });
    if (status !== 0) throw new Error("the types of the engine for browsers cannot be made");
    for (const file of reached(made, ENTRY.replace(/\.ts$/, ".d.ts"))) {
      mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
      // What is imported for its effect alone has no types.
      const text = readFileSync(path.join(made, file), "utf8").replaceAll(/^import "[^"]+";\n/gm, "");
      writeFileSync(path.join(folder, file), text);
    }
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

/** A declaration and all that it imports. */
function reached(folder: string, entry: string): Set<string> {
  const files = new Set([entry]);
  for (const file of files) {
    const text = readFileSync(path.join(folder, file), "utf8");
    for (const [, name = ""] of text.matchAll(/(?:from |import\()"(\.[^"]+)\.ts"/g)) {
      files.add(path.posix.join(path.posix.dirname(file), `${name}.d.ts`));
    }
  }
  return files;
}
