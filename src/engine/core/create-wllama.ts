import type { EnginePlatform, LogLevel } from "./platform.ts";
import { Wllama, type WllamaInstance } from "./wllama-api.ts";

/**
 * wllama on a platform, without anything loaded.
 * @param onLine called with each line that it logs
 */
export function createWllama(
  platform: EnginePlatform,
  onLine: (level: LogLevel, line: string) => void,
): WllamaInstance {
  const log =
    (level: LogLevel) =>
    (...parts: unknown[]) => {
      const line = parts.map(describe).join(" ").trimEnd();
      onLine(level, line);
      platform.log(level, line);
    };
  const unused = {}; // files come from our platform, so wllama's managers are not used
  const wllama = new Wllama(
    { default: platform.wasmUrl },
    {
      cacheManager: unused,
      modelManager: unused,
      logger: { debug: log("debug"), log: log("info"), warn: log("warn"), error: log("error") },
    },
  );
  const { wasmUrl: wasm, scriptUrl: worker } = platform;
  // Without this, wllama would fetch code from a CDN when a WASM feature is missing.
  wllama.setCompat(worker === undefined ? null : { worker, wasm });
  return wllama;
}

function describe(part: unknown): string {
  if (typeof part === "string") return part;
  if (part instanceof Error) return part.message;
  try {
    return JSON.stringify(part) ?? String(part);
  } catch {
    return String(part);
  }
}
