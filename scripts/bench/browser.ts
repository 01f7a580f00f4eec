#!/usr/bin/env node
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { BrowserPage } from "../../test/support/browser-page.ts";
import { FirefoxPage, findFirefox } from "../../test/support/firefox-page.ts";
import { findChromium } from "../../test/support/launch-chromium.ts";
import { startDaemon, type TestDaemon } from "../../test/support/start-daemon.ts";
import { benchPrompt, writeBenchModel } from "./daemon/bench-model.ts";
import { median } from "./daemon/statistics.ts";

const HELP = `Compares the engine in a browser tab with the daemon's, on the same machine and model, in turns.

  node scripts/bench/browser.ts [--browser chromium|firefox] [--model FILE.gguf] [--runs N] [--prompt N] [--tokens N] [--threads N]

  --browser NAME chromium (default) or firefox
  --model FILE   the model to generate with; default: one of random weights, made for the run
  --runs N       runs of each side (default 15: compiling optimized code takes a browser several)
  --prompt N     tokens of the prompt (default 256)
  --tokens N     tokens of each answer (default 64)
  --threads N    threads of both engines (default 1)

Needs the browser (the variables CHROMIUM and FIREFOX name others). Prints medians in tokens per second, and the tab's as a multiple
of the daemon's.`;

const { values } = parseArgs({
  options: {
    browser: { type: "string", default: "chromium" },
    model: { type: "string" },
    runs: { type: "string", default: "15" },
    prompt: { type: "string", default: "256" },
    tokens: { type: "string", default: "64" },
    threads: { type: "string", default: "1" },
    help: { type: "boolean", short: "h", default: false },
  },
});
const measurementSchema = z.object({ promptRate: z.number(), rate: z.number() });
type Measurement = z.output<typeof measurementSchema>;

async function main(): Promise<void> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-bench-"));
  try {
    const model = path.resolve(values.model ?? path.join(folder, "bench.gguf"));
    if (!values.model) writeBenchModel(model);
    const flags = ["--models-load", model, "--engine-threads", values.threads, "--models-slots", "1"];
    await using daemon = disposable(await startDaemon({ args: flags }));
    await using page = await openPage(`${daemon.url}/ui/`);
    await page.evaluate(SETUP);
    const measured: Record<"daemon" | "tab", Measurement[]> = { daemon: [], tab: [] };
    for (let run = 0; run <= Number(values.runs); run += 1) {
      for (const side of ["daemon", "tab"] as const) {
        const body = {
          prompt: benchPrompt(Number(values.prompt), run),
          max_tokens: Number(values.tokens),
          temperature: 0,
        };
        const result = await page.evaluate(`measure("${side}", ${JSON.stringify(body)})`);
        // The first of each side warms up.
        if (run > 0) measured[side].push(measurementSchema.parse(result));
      }
    }
    report(measured);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function openPage(url: string): Promise<BrowserPage | FirefoxPage> {
  const isFirefox = values.browser === "firefox";
  if (!isFirefox && values.browser !== "chromium")
    throw new Error(`The browser is chromium or firefox, not ${values.browser}.`);
  const program = isFirefox ? findFirefox() : findChromium();
  if (program === undefined) {
    const name = values.browser.toUpperCase();
    throw new Error(`There is no ${values.browser} on this machine; set ${name} to its path.`);
  }
  if (isFirefox) return await FirefoxPage.open(program, url);
  const page = await BrowserPage.open(program, url);
  await page.until("document.readyState === 'complete'");
  return page;
}

/** Both sides are asked by the same code in the page: by fetch() over HTTP, and by the engine's own fetch(). */
const SETUP = `(async () => {
  const { createEngine } = await import("/browser/daybreak.js");
  const { models } = await (await fetch("/api/models")).json();
  const { alias } = models.find(({ state }) => state === "loaded");
  const { files } = await (await fetch("/api/models/" + encodeURIComponent(alias) + "/files")).json();
  const model = await (await fetch(files[0].url)).blob();
  const engine = await createEngine({ model, name: alias, threads: ${Number(values.threads)} });
  const asks = { daemon: (...args) => fetch(...args), tab: engine.fetch };
  globalThis.measure = async (side, body) => {
    const begun = performance.now();
    const headers = { "content-type": "application/json" };
    const answer = await asks[side]("/api/generate", { method: "POST", headers, body: JSON.stringify({ ...body, model: alias, stream: true }) });
    if (!answer.ok) throw new Error(await answer.text());
    let text = "", first;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      first ??= performance.now();
      text += read.value;
    }
    const last = performance.now();
    const summary = JSON.parse(text.trim().split("\\n").at(-1));
    return {
      promptRate: summary.prompt_tokens / ((first - begun) / 1000),
      rate: (summary.completion_tokens - 1) / ((last - first) / 1000),
    };
  };
})()`;

function report(measured: Readonly<Record<"daemon" | "tab", readonly Measurement[]>>): void {
  console.log(
    `${os.cpus()[0]?.model ?? "unknown processor"}, ${values.browser}, ${values.threads} thread(s), ${values.runs} runs in turns\n`,
  );
  console.log("| tokens/s | daemon | tab | tab / daemon |\n|---|---:|---:|---:|");
  for (const [title, key] of [
    ["prompt, to the first token", "promptRate"],
    ["answer", "rate"],
  ] as const) {
    const [daemon, tab] = (["daemon", "tab"] as const).map((side) =>
      median(measured[side].map((each) => each[key])),
    );
    console.log(`| ${title} | ${daemon!.toFixed(1)} | ${tab!.toFixed(1)} | ${(tab! / daemon!).toFixed(2)} |`);
  }
}

function disposable(daemon: TestDaemon): TestDaemon & AsyncDisposable {
  return { ...daemon, [Symbol.asyncDispose]: async () => await daemon.stop() };
}

if (values.help) console.log(HELP);
else await main();
