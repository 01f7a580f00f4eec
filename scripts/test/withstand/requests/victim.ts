import { send } from "./send.ts";

/** The model that is attacked; another one is watched. */
export const VICTIM = "victim";

/** Makes it, where an attack has deleted it. */
export async function makeVictim(url: string): Promise<void> {
  const body = JSON.stringify({ source: "daybreak-mini", destination: VICTIM });
  const headers = { "content-type": "application/json" };
  await send(url, { method: "POST", path: "/api/models/copy", headers, body, deadlineMs: 30_000 });
}
