import { realpath } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { homeFolder } from "../../launch/home-folder.mjs";
import { readSmallFile } from "./found-model.ts";

/** Programs whose folders are known, and what people call them. */
export const STORES = { ollama: "Ollama", lmstudio: "LM Studio", hf: "the Hugging Face tools" } as const;
export type Store = keyof typeof STORES;

export function isStore(name: string): name is Store {
  return Object.hasOwn(STORES, name);
}

/** Where the installer for Linux, NixOS and other distributions put the models of Ollama's own account. */
const OLLAMA_ACCOUNTS = ["/usr/share/ollama/.ollama/models", "/var/lib/ollama/models", "/var/lib/ollama"];

/** The folders where a program keeps its models, the likeliest first. */
export async function storeFolders(
  store: Store,
  env: NodeJS.ProcessEnv = process.env,
  home: string | undefined = homeFolder(),
): Promise<string[]> {
  const inHome = (...parts: string[]): string[] => (home === undefined ? [] : [path.join(home, ...parts)]);
  if (store === "lmstudio") return home === undefined ? [] : await lmStudioFolders(home);
  if (store === "ollama") {
    // Ollama reads it so as well: people put it into quotes in files of services.
    const own = env["OLLAMA_MODELS"]?.trim().replaceAll(/^["']+|["']+$/g, "");
    return own ? [own] : [...inHome(".ollama", "models"), ...OLLAMA_ACCOUNTS];
  }
  const hub = env["HF_HUB_CACHE"] || env["HUGGINGFACE_HUB_CACHE"];
  if (hub) return [hub];
  if (env["HF_HOME"]) return [path.join(env["HF_HOME"], "hub")];
  if (env["XDG_CACHE_HOME"]) return [path.join(env["XDG_CACHE_HOME"], "huggingface", "hub")];
  return inHome(".cache", "huggingface", "hub");
}

/** Names LM Studio's home, where its user has moved it or an early version has made it. */
const POINTER = ".lmstudio-home-pointer";

const settingsSchema = z.object({ downloadsFolder: z.string() });

/** Where LM Studio may keep its models, the likeliest first. */
async function lmStudioFolders(home: string): Promise<string[]> {
  const pointer = (await textOf(home, POINTER)).trim();
  const homes = [pointer, path.join(home, ".lmstudio"), path.join(home, ".cache", "lm-studio")];
  const folders = await Promise.all(
    homes.map(async (each) => [await chosenFolder(each), path.join(each, "models")]),
  );
  return [...new Set(folders.flat().filter((folder) => path.isAbsolute(folder)))];
}

/** The folder of models that the user has chosen in the settings; empty: none. */
async function chosenFolder(home: string): Promise<string> {
  try {
    return settingsSchema.parse(JSON.parse(await textOf(home, "settings.json"))).downloadsFolder;
  } catch {
    return "";
  }
}

/** The text of a file in a folder; empty when it cannot be had. */
async function textOf(folder: string, name: string): Promise<string> {
  try {
    return await readSmallFile(await realpath(folder), path.join(folder, name));
  } catch {
    return "";
  }
}
