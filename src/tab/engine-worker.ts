import "./older-browsers.ts";
import { toError } from "../errors/to-error.ts";
import { PAGE_BUILD } from "../engine/browser/compat-build.ts";
import { ServiceError } from "../errors/service-error.ts";
import { NO_SETTINGS } from "../models/model.ts";
import { parseInstructions } from "../models/modelfile/parse-instructions.ts";
import { readSettings } from "../models/modelfile/read-settings.ts";
import { type AnswerMessage, type FetchMessage } from "./fetch-messages.ts";
import { FetchServer } from "./serve-fetch.ts";
import { createTabApp } from "./tab-app.ts";
import { readTabModel } from "./tab-model.ts";
import { TabModels } from "./tab-models.ts";
import type { StartMessage, WorkerMessage } from "./worker-messages.ts";

/** The worker of a page's engine: the daemon's APIs, and llama.cpp in workers of its own. */

/** Longest time without progress while loading: compiling the WebAssembly is a part of it. */
const LOAD_TIMEOUT_MS = 120_000;
const STALL_TIMEOUT_MS = 120_000;

let server: FetchServer | undefined;

function send(message: WorkerMessage | AnswerMessage): void {
  postMessage(message);
}

async function start({ alias, files, modelfile, wasmUrl, compat, options }: StartMessage): Promise<void> {
  try {
    const settings = modelfile === undefined ? NO_SETTINGS : readSettings(parseInstructions(modelfile));
    const build = PAGE_BUILD.isCompat ? compat : { wasmUrl };
    const model = await readTabModel(alias, files, settings, options);
    const models = new TabModels(model, {
      ...build,
      loadTimeoutMs: LOAD_TIMEOUT_MS,
      stallTimeoutMs: STALL_TIMEOUT_MS,
      log: (level, line) => {
        if (level === "error") console.error(line);
      },
      onProgress: (progress) => send({ type: "progress", progress }),
    });
    const { info } = await models.start();
    const app = createTabApp(models, model.spec.slots);
    server = new FetchServer((request, env) => app.fetch(request, env), send);
    send({ type: "ready", alias, info, gpu: models.gpu });
  } catch (error) {
    const { code, message } = ServiceError.from(toError(error));
    send({ type: "refused", code, message });
  }
}

globalThis.addEventListener("message", ({ data }: MessageEvent<StartMessage | FetchMessage>) => {
  if (data.type === "start") void start(data);
  else server?.receive(data);
});
