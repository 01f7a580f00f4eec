import { effect, signal as value } from "@preact/signals";
import { z } from "zod";
import type { ChatSettings } from "./conversation.ts";
import { settingsSchema } from "./conversation-store.ts";

const KEY = "daybreak-presets";

const presetSchema = z.object({ name: z.string(), settings: settingsSchema });

/** Settings with a name, to be used again. */
interface Preset {
  readonly name: string;
  readonly settings: ChatSettings;
}

/** What this browser keeps, by name. */
export const presets = value<readonly Preset[]>(read());

effect(() => localStorage.setItem(KEY, JSON.stringify(presets.value)));

/** Keeps settings under a name, which may have meant others before. */
export function savePreset(name: string, settings: ChatSettings): void {
  const others = presets.value.filter((each) => each.name !== name);
  presets.value = [...others, { name, settings }].toSorted((one, other) =>
    one.name.localeCompare(other.name),
  );
}

export function deletePreset(name: string): void {
  presets.value = presets.value.filter((each) => each.name !== name);
}

/** What cannot be read any longer is left out. */
function read(): Preset[] {
  try {
    const found = z.array(presetSchema).parse(JSON.parse(localStorage.getItem(KEY) ?? "[]"));
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- optional fields are absent, never undefined: it was JSON
    return found as unknown as Preset[];
  } catch {
    return [];
  }
}
