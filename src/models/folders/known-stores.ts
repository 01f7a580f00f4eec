import { realpath } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { tryJson } from "../../json/json-values.ts";
import { homeFolder } from "../../launch/home-folder.mjs";
import { readSmallFile } from "./found-model.ts";

/** Programs whose model folders are known, with their names for users. */
export const STORES = { ollama: "Ollama", lmstudio: "LM Studio", hf: "the Hugging Face tools" } as const;
export type Store = keyof typeof STORES;

export function isStore(name: string): name is Store {
  return Object.hasOwn(STORES, name);
}

/** Model folders of Ollama's service account, as set by its Linux installer, NixOS and other distributions. */
const OLLAMA_SERVICE_FOLDERS = [
  "/usr/share/ollama/.ollama/models",
  "/var/lib/ollama/models",
  "/var/lib/ollama",
];

/** Returns the folders where a program may store its models, the likeliest first. */
export async function storeFolders(
  store: Store,
  env: NodeJS.ProcessEnv = process.env,
  home: string | undefined = homeFolder(),
): Promise<string[]> {
  const inHome = (...parts: string[]): string[] => (home === undefined ? [] : [path.join(home, ...parts)]);
  if (store === "lmstudio") return home === undefined ? [] : await lmStudioFolders(home);
  if (store === "ollama") {
    // As in Ollama, quotes are removed, which service files often have.
    const configured = env["OLLAMA_MODELS"]?.trim().replaceAll(/^["']+|["']+$/g, "");
    return configured ? [configured] : [...inHome(".ollama", "models"), ...OLLAMA_SERVICE_FOLDERS];
  }
  const hub = env["HF_HUB_CACHE"] || env["HUGGINGFACE_HUB_CACHE"];
  if (hub) return [hub];
  if (env["HF_HOME"]) return [path.join(env["HF_HOME"], "hub")];
  if (env["XDG_CACHE_HOME"]) return [path.join(env["XDG_CACHE_HOME"], "huggingface", "hub")];
  return inHome(".cache", "huggingface", "hub");
}

/** File with the path of LM Studio's home folder. */
const HOME_POINTER = ".lmstudio-home-pointer";

const settingsSchema = z.object({ downloadsFolder: z.string() });

/** Returns the folders where LM Studio may store its models, the likeliest first. */
async function lmStudioFolders(home: string): Promise<string[]> {
  const pointer = (await readTextOrEmpty(home, HOME_POINTER)).trim();
  const homes = [pointer, path.join(home, ".lmstudio"), path.join(home, ".cache", "lm-studio")];
  const folders = await Promise.all(
    homes.map(async (each) => [await chosenFolder(each), path.join(each, "models")]),
  );
  return [...new Set(folders.flat().filter((folder) => path.isAbsolute(folder)))];
}

/** Returns the folder of models in LM Studio's settings; empty: none is set. */
async function chosenFolder(home: string): Promise<string> {
  const settings = tryJson(await readTextOrEmpty(home, "settings.json"));
  return settingsSchema.safeParse(settings).data?.downloadsFolder ?? "";
}

/** Returns the text of a file in a folder; empty if that cannot be read. */
async function readTextOrEmpty(folder: string, name: string): Promise<string> {
  try {
    return await readSmallFile(await realpath(folder), path.join(folder, name));
  } catch {
    return "";
  }
}
