import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { findChromium } from "../support/launch-chromium.ts";
import type { BrowserPage } from "../support/browser-page.ts";
import type { FixtureHub } from "../support/fixture-hub.ts";
import {
  card,
  download,
  GATED,
  type ModelsView,
  offer,
  openModelsView,
  type OpenModelsView,
  SUGGESTED,
  TINY,
  TINY_ALIAS,
} from "../support/models-view.ts";
import { need } from "../support/need.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

/** Match downloads of the two models. */
const TINY_BYTES = /^storage GET \/stored\/ada\//;
const SUGGESTED_BYTES = /^storage GET \/stored\/ggml-org\//;

describe.skipIf(CHROMIUM.isMissing)(`the hub in the view Models${CHROMIUM.note}`, () => {
  let view: OpenModelsView;
  let on: ModelsView;
  let page: BrowserPage;
  let hub: FixtureHub;
  beforeAll(async () => {
    view = await openModelsView(chromium!);
    ({ on, page, hub } = view);
  });
  afterAll(async () => {
    await view?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    await on.enter("#/models");
    await on.isThere(card("daybreak-mini"));
  });

  /** Starts a download that pauses in the middle until the returned function is called. */
  async function begin(): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    hub.failNext(TINY_BYTES, { pause: { after: 2_000_000, until: promise } });
    await on.offers("ada/tiny-GGUF");
    await on.press(offer(TINY), "Download");
    await on.has(download(TINY), " of 4.8 MB · ");
    return resolve;
  }

  const state = (wanted: string, name = TINY) =>
    on.until(`document.querySelector("${download(name)}")?.dataset.state === "${wanted}"`);

  describe("the hub", () => {
    test("can be searched, and each model shows whether it fits into memory, with a reason", async () => {
      await on.search("tiny");
      await on.until(`document.querySelectorAll(".repos > li").length === 2`);
      expect(await on.textOf(".repos > li summary")).toBe(
        "ada/tiny-GGUF 123K downloads · 3 likes · changed May 6, 2026",
      );
      await page.evaluate(`document.querySelector(".repos details").open = true`);
      await on.until(`document.querySelectorAll(".offers li").length === 2`);
      expect(await on.textOf(offer(TINY))).toMatch(
        /^Q8_0 recommended4\.8 MBFits: about .* of memory with 2,048 tokens of context\.Download$/,
      );
      expect(await on.textOf(offer("hf:ada/tiny-GGUF:BF16"))).toMatch(
        /^BF16 41\.0 GBDoes not fit\. The model needs about \d+ MiB, but an engine can have at most \d+ MiB/,
      );
      expect(await on.textOf(".repos")).toContain("Estimated from the file sizes");
    });

    test("reports an empty search result, a missing repository, and a failed search", async () => {
      await on.search("nothing of the kind");
      await on.has("#hub-results", "The hub has no GGUF models with that name.");
      await on.search("ada/none");
      await on.has(".repos .wrong", "There is no repository ada/none on the hub");
      hub.failNext(/^hub GET/, { status: 404 });
      await on.search("tiny");
      await on.has("#hub-results", "cannot be searched");
      expect(await on.textOf("#problem")).toBe("");
    });

    test("has suggested models, which are downloaded with a click", async () => {
      await on.until(`document.querySelectorAll("#suggestions li.card").length === 6`);
      await on.press("#models", "Show all 11");
      await on.until(`document.querySelectorAll("#suggestions li.card").length === 11`);
      const suggestion = `[data-suggestion='${SUGGESTED}']`;
      expect(await on.textOf(suggestion)).toContain("the smallest download");
      await on.press(suggestion, "Download");
      await on.has(download(SUGGESTED), `It is on disk, as ${SUGGESTED}.`);
      await on.has(suggestion, "On disk");
      await on.press(download(SUGGESTED), "Close");
      await on.isGone("#downloads");
      await on.open(SUGGESTED, "Delete …");
      expect(await on.textOf("dialog")).toContain("frees up to 4.8 MB");
      await on.confirm(card(SUGGESTED));
    });
  });

  describe("a download", () => {
    test("shows its progress, can be paused and resumed, and opens the chat", async () => {
      const resumeDownload = await begin();
      expect(await on.textOf(`${offer(TINY)} .buttons`)).toBe("Downloading …");
      await on.press(download(TINY), "Pause");
      await state("paused");
      expect(await on.textOf(download(TINY))).toMatch(
        /\d [kM]B of 4\.8 MB · \d+ % · paused; what has arrived is kept/,
      );
      resumeDownload();
      hub.failNext(TINY_BYTES, { drops: { bytes: 400_000, everyMs: 120 } });
      await on.press(download(TINY), "Resume");
      await on.until(
        `/ · \\d+ % · .*\\/s · [\\d.]+ m?s left/.test(document.querySelector("${download(TINY)} .facts")?.textContent)`,
      );
      await state("done");
      expect(hub.downloads.at(-1)?.headers.range).toMatch(/^bytes=[1-9]/);
      await on.has(offer(TINY), "Chat");
      await on.press(download(TINY), "Chat");
      await on.until(`document.getElementById("model")?.value === "${TINY_ALIAS}"`);
      await on.type("#model", "daybreak-mini");
      await on.enter("#/models");
      await on.press(download(TINY), "Close");
      await on.open(TINY_ALIAS, "Delete …");
      await on.confirm(card(TINY_ALIAS));
    });

    test("of another program is listed", async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      hub.failNext(SUGGESTED_BYTES, { pause: { after: 2_000_000, until: promise } });
      const controller = new AbortController();
      const pulling = fetch(`${view.daemon.url}/api/models/pull`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name: SUGGESTED, stream: true }),
        signal: controller.signal,
      });
      await pulling;
      await page.evaluate("location.reload()");
      await state("elsewhere", SUGGESTED);
      await on.has(download(SUGGESTED), "begun by another tab or program");
      controller.abort();
      await on.isGone(download(SUGGESTED));
      resolve();
      await fetch(`${view.daemon.url}/api/hub/discard`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name: SUGGESTED }),
      });
      expect(await on.textOf("#problem")).toBe("");
    });

    test("that fails explains what to do, while another one continues", async () => {
      const resumeDownload = await begin();
      await on.offers("bob/tiny-gated-GGUF");
      expect(await on.textOf(".repos .note")).toContain("HUB_TOKEN");
      await on.press(offer(GATED), "Download");
      await on.has(download(GATED), "start the daemon with HUB_TOKEN set to it");
      expect(await page.evaluate(`document.querySelector("${download(GATED)} a").href`)).toBe(
        `${hub.url}/bob/tiny-gated-GGUF`,
      );
      await state("running");
      hub.failNext(/^hub GET/, { status: 401, body: '{"error":"Invalid credentials"}' });
      await on.press(download(GATED), "Try again");
      await on.has(download(GATED), "The hub does not accept HUB_TOKEN");
      await on.press(download(GATED), "Close");
      await on.isGone(download(GATED));
      await on.press(download(TINY), "Cancel");
      await on.isGone(download(TINY));
      resumeDownload();
    });

    test("that has failed is still listed as failed after a reload", async () => {
      await on.offers("bob/tiny-gated-GGUF");
      await on.press(offer(GATED), "Download");
      await state("failed", GATED);
      await page.evaluate("globalThis.isOld = true; location.reload()");
      await on.until(`globalThis.isOld === undefined`);
      await state("failed", GATED);
      expect(await on.textOf(download(GATED))).toContain("HUB_TOKEN");
      await on.press(download(GATED), "Close");
      await on.isGone(download(GATED));
    });

    test("continues after a reload of the page, and canceling it deletes the partial file", async () => {
      const resumeDownload = await begin();
      // The daemon may not have noticed yet that the client is gone.
      const again = Promise.withResolvers<void>();
      hub.failNext(TINY_BYTES, { pause: { after: 500_000, until: again.promise } });
      await page.evaluate("location.reload()");
      await state("running");
      await on.has(download(TINY), " of 4.8 MB · ");
      await on.press(download(TINY), "Pause");
      await state("paused");
      await page.evaluate("location.reload()");
      // A paused download stays paused.
      await state("paused");
      await on.has(download(TINY), "paused; what has arrived is kept");
      await on.press(download(TINY), "Cancel");
      await on.isGone(download(TINY));
      resumeDownload();
      again.resolve();
      await on.offers("ada/tiny-GGUF");
      expect(await on.textOf(offer(TINY))).not.toContain("have arrived");
    });
  });

  test("reports that the hub is unreachable, and a download that never began leaves nothing behind", async () => {
    await on.isThere(`[data-suggestion='${SUGGESTED}']`);
    await hub.close();
    await on.search("tiny");
    await on.has("#hub-results", `The hub at ${hub.url} cannot be reached`);
    await on.press(`[data-suggestion='${SUGGESTED}']`, "Download");
    await on.has(download(SUGGESTED), `The hub at ${hub.url} cannot be reached`);
    expect(await on.textOf(download(SUGGESTED))).toContain("Check the network and HUB_URL");
    await on.press(download(SUGGESTED), "Close");
    await on.isGone("#downloads");
    expect(await on.textOf("#problem")).toBe("");
  });
});
