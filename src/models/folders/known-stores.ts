import path from "node:path";
import { homeFolder } from "../../launch/home-folder.mjs";
import { lmStudioFolders } from "./lm-studio.ts";

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
