import { experimentResultSchema, type ExperimentResult } from "../../dialects/native/experiment.ts";
import { toError } from "../../errors/to-error.ts";
import { CliError } from "../cli-error.ts";
import type { CliIo } from "../cli-io.ts";
import { daemonAddress } from "../client/daemon-address.ts";
import type { DaemonClient } from "../client/daemon-client.ts";
import { httpAddress } from "../client/http-address.ts";
import { EXIT } from "../exit-codes.ts";
import type { ClientOptions } from "../options/client-command.ts";
import { ChromiumPage } from "./chromium-page.ts";
import { findChromium } from "./find-chromium.ts";

/**
 * Runs an experiment in a tab of Chromium, which takes engine and model from the daemon.
 * @throws CliError when there is no Chromium, or the run fails there
 */
export async function runInChromium(
  io: CliIo,
  client: DaemonClient,
  options: ClientOptions,
  { model, request }: { model: string; request: object },
): Promise<ExperimentResult> {
  const chromium = findChromium(io.env);
  if (chromium === undefined) {
    throw new CliError(
      EXIT.error,
      "no_browser",
      "Chromium, Chrome or Edge was not found. Install one, or name its program in the variable CHROMIUM.",
    );
  }
  const address = daemonAddress(io.env, options);
  const { apiKey } = address;
  const url = `${await httpAddress(client, address)}/ui/experiments/`;
  const headers: Record<string, string> = apiKey ? { authorization: `Bearer ${apiKey}` } : {};
  try {
    await using page = await ChromiumPage.open(chromium, url, { headers, signal: io.signal });
    const onAbort = (): void => void page[Symbol.asyncDispose]();
    io.signal.addEventListener("abort", onAbort, { once: true });
    const value = await page.evaluate(
      `import("/browser/experiments.js").then(({ runHere }) => runHere(${JSON.stringify(model)}, ${JSON.stringify(request)}))`,
    );
    io.signal.removeEventListener("abort", onAbort);
    return experimentResultSchema.parse(value);
  } catch (error) {
    io.signal.throwIfAborted();
    throw new CliError(
      EXIT.error,
      "browser_failed",
      `The experiment failed in ${chromium}, at ${url}: ${toError(error).message}`,
      error,
    );
  }
}
