import path from "node:path";
import { fileURLToPath } from "node:url";
import { type Script, writeTurnsModel } from "../support/scripted/turns-model.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const SHIPPED = fileURLToPath(new URL("../../models/daybreak-mini.gguf", import.meta.url));

/** Loads a model that says what its script tells it to, with a context of 131,072 tokens. */
export async function loadScripted(daemon: TestDaemon, alias: string, script: Script): Promise<void> {
  const file = path.join(daemon.cacheDir, `${alias}.gguf`);
  await writeTurnsModel(file, SHIPPED, script);
  const answer = await fetch(`${daemon.url}/api/models/load`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ alias, path: file, context_size: 131_072 }),
  });
  if (!answer.ok) throw new Error(`loading ${alias}: ${answer.status} ${await answer.text()}`);
}
