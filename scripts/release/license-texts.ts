import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import { LLAMA_CPP_BUILD } from "../../wasm/llama-cpp-build.ts";
import { BUNDLED, ROOT } from "./project.ts";

const manifestSchema = z.object({ name: z.string(), version: z.string(), license: z.string() });

/** Including that of what a bundle was made of. */
const LICENSE_FILE = /^(licen[cs]e|copying|notice|swagger-ui-bundle\.js\.license)/i;

/**
 * The licenses of llama.cpp, of the packages that the program contains and of all packages below a folder node_modules, with their texts, sorted by name. A package
 * that brings no text is named with its license alone.
 */
export function licenseTexts(nodeModules: string): string {
  const llamaCpp = readFileSync(path.join(ROOT, "wasm/LICENSE-llama.cpp"), "utf8").trim();
  const seen = new Map<string, string>();
  const bundled = BUNDLED.map((name) => path.join(ROOT, "node_modules", name));
  for (const folder of [...bundled, ...packageFolders(nodeModules)]) {
    const text = readFileSync(path.join(folder, "package.json"), "utf8");
    const { name, version, license } = manifestSchema.parse(JSON.parse(text));
    const texts = readdirSync(folder)
      .filter((file) => LICENSE_FILE.test(file))
      .toSorted()
      .map((file) => readFileSync(path.join(folder, file), "utf8").trim());
    seen.set(
      `${name} ${version}`,
      [`${name} ${version}: ${license}`, ...texts].join("\n\n").replaceAll("\r\n", "\n"),
    );
  }
  const line = `\n\n${"-".repeat(80)}\n\n`;
  const sorted = [...seen].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text);
  const first = ["Daybreak brings along the following.", `llama.cpp ${LLAMA_CPP_BUILD}: MIT\n\n${llamaCpp}`];
  return `${[...first, ...sorted].join(line)}\n`;
}

function packageFolders(nodeModules: string): string[] {
  return readdirSync(nodeModules, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
    .flatMap(({ name }) => {
      const folder = path.join(nodeModules, name);
      if (name.startsWith("@")) return packageFolders(folder);
      const nested = path.join(folder, "node_modules");
      return [folder].concat(existsSync(nested) ? packageFolders(nested) : []);
    });
}
