#!/usr/bin/env node
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { z } from "zod";
import { findChromium } from "../../test/support/launch-chromium.ts";
import { BrowserPage } from "../../test/support/browser-page.ts";
import { startDaemon } from "../../test/support/start-daemon.ts";
import { median } from "./daemon/statistics.ts";

const HELP = `Measures the page at /ui/ in Chromium: how large it is, when it is first drawn, and whether it keeps up with a stream.

  node scripts/bench/page.ts [--runs N] [--rate N] [--seconds N]

  --runs N     how often the page is opened, each time by a browser that has never seen it (default 7)
  --rate N     tokens per second of the stream (default 200)
  --seconds N  length of the stream (default 10)

The stream is made in the page in place of the daemon's answer: Markdown with code, tables and formulas. Needs Chromium (the
variable CHROMIUM names another). A frame is dropped when the next one comes more than one and a half frames later.`;

/** Milliseconds per frame at 60 frames per second. */
const FRAME_MS = 1000 / 60;

/** A person has to write before an answer comes. */
const SETTLING_MS = 3000;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "7" },
    rate: { type: "string", default: "200" },
    seconds: { type: "string", default: "10" },
    help: { type: "boolean", short: "h", default: false },
  },
});

/** Pieces of about a token each. */
const TEXT = [
  "## A heading\n\nSome **bold** words and `code`, then a list:\n\n- one\n- two\n- three\n\n",
  "```js\nconst sum = (a, b) => a + b;\nconsole.log(sum(1, 2));\n```\n\n",
  "| name | value |\n|---|--:|\n| alpha | 1 |\n| beta | 2 |\n\n",
  "The area is $\\pi r^2$, and\n\n$$\\int_0^1 x\\,dx = \\frac{1}{2}$$\n\n",
].join("");

/** In the page: answers the next question by a stream, and measures the time between frames while it comes. */
const STREAM = `async ({ text, rate, seconds }) => {
  const pieces = text.match(/[^]{1,4}/g);
  const send = globalThis.fetch;
  globalThis.fetch = async (address, init) => {
    if (!String(address).endsWith("/api/chat")) return await send(address, init);
    const line = (content, more) => JSON.stringify({ model: "x", message: { role: "assistant", content }, done: false, ...more }) + "\\n";
    const encoder = new TextEncoder();
    const body = new ReadableStream({
      async start(controller) {
        const begun = performance.now();
        let sent = 0;
        while (sent < rate * seconds) {
          const due = Math.min(rate * seconds, Math.floor(((performance.now() - begun) / 1000) * rate));
          for (; sent < due; sent += 1) controller.enqueue(encoder.encode(line(pieces[sent % pieces.length])));
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        controller.enqueue(encoder.encode(line("", { done: true, done_reason: "stop", prompt_tokens: 1, completion_tokens: sent })));
        controller.close();
      },
    });
    return new Response(body, { headers: { "content-type": "application/x-ndjson" } });
  };
  const field = document.getElementById("prompt");
  field.value = "Go";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  document.getElementById("send").click();
  const times = [];
  const isDone = () => document.querySelector(".assistant .summary") && document.getElementById("stop").disabled;
  await new Promise((resolve) => {
    const tick = (time) => {
      times.push(time);
      if (isDone()) resolve();
      else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  globalThis.fetch = send;
  return times.slice(1).map((time, index) => time - times[index]);
}`;

async function main(): Promise<void> {
  const chromium = findChromium();
  if (chromium === undefined)
    throw new Error("There is no Chromium on this machine; set CHROMIUM to its path.");
  const daemon = await startDaemon({ args: ["--auto-load"] });
  try {
    await openOnce(chromium, daemon.url);
    const paints: number[] = [];
    for (let run = 0; run < Number(values.runs); run += 1) {
      const { paint, ...opened } = await openOnce(chromium, daemon.url);
      paints.push(paint);
      if (run === 0) console.log(await sizes(opened.files));
    }
    console.log(
      `First contentful paint: ${median(paints).toFixed(0)} ms (${paints.map((each) => each.toFixed(0)).join(", ")})`,
    );
    console.log(await streamed(chromium, daemon.url));
  } finally {
    await daemon.stop();
  }
}

async function openOnce(chromium: string, url: string): Promise<{ paint: number; files: readonly string[] }> {
  await using page = await BrowserPage.open(chromium, `${url}/ui/`);
  await page.until(`document.getElementById("model")?.value`);
  const paint = await page.evaluate(
    `performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN`,
  );
  return {
    paint: z.number().parse(paint),
    files: page.requests.filter((each) => /\/(ui|browser)\//.test(each)),
  };
}

function isScript(file: string): boolean {
  return file.endsWith(".js");
}

async function sizes(files: readonly string[]): Promise<string> {
  const compressed = await Promise.all(
    files.map(async (file) => ({
      file,
      bytes: gzipSync(new Uint8Array(await (await fetch(file)).arrayBuffer()), { level: 9 }).length,
    })),
  );
  const total = (isCounted: (file: string) => boolean): string => {
    const bytes = compressed.filter(({ file }) => isCounted(file)).reduce((sum, each) => sum + each.bytes, 0);
    return `${(bytes / 1000).toFixed(0)} KB`;
  };
  return `Compressed: ${total(isScript)} of scripts, ${total((file) => !isScript(file))} of the rest, in ${files.length} files`;
}

async function streamed(chromium: string, url: string): Promise<string> {
  await using page = await BrowserPage.open(chromium, `${url}/ui/`);
  await page.until(`document.getElementById("model")?.value`);
  await page.evaluate(`new Promise((resolve) => setTimeout(resolve, ${String(SETTLING_MS)}))`);
  const options = { text: TEXT, rate: Number(values.rate), seconds: Number(values.seconds) };
  const gaps = z.array(z.number()).parse(await page.evaluate(`(${STREAM})(${JSON.stringify(options)})`));
  const dropped = gaps.reduce((sum, gap) => sum + Math.max(0, Math.round(gap / FRAME_MS) - 1), 0);
  const share = (100 * dropped) / (gaps.length + dropped);
  return `A stream of ${options.rate} tokens/s for ${options.seconds} s: ${gaps.length} frames, ${dropped} dropped (${share.toFixed(1)} %), longest gap ${Math.max(...gaps).toFixed(0)} ms`;
}

if (values.help) console.log(HELP);
else await main();
