import { signal as value } from "@preact/signals";

/** What the chat shows above the messages when it is asked for. */
export const PANELS = [
  ["settings", "Settings"],
  ["tools", "Tools"],
  ["shortcuts", "Shortcuts"],
] as const;
export type Panel = (typeof PANELS)[number][0];

export const shownPanel = value<Panel | undefined>(undefined);
