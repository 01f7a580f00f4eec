import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { findChromium } from "../support/launch-chromium.ts";
import { BrowserPage } from "../support/browser-page.ts";
import { ENGINES_IN_PAGE } from "../support/engines-in-page.ts";
import { need } from "../support/need.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

const answerSchema = z.object({
  body: z.object({
    choices: z.array(z.object({ message: z.object({ content: z.string() }) })),
    timings: z.object({ cache_n: z.int(), prompt_n: z.int() }),
  }),
});

type Message = { role: string; content: string };

describe.skipIf(CHROMIUM.isMissing)(`an engine with one slot in a page of Chromium${CHROMIUM.note}`, () => {
  let page: BrowserPage;
  let daemon: TestDaemon;
  beforeAll(async () => {
    daemon = await startDaemon();
    page = await BrowserPage.open(chromium!, `${daemon.url}/ui/`);
    await page.until("document.readyState === 'complete'");
    await page.evaluate(ENGINES_IN_PAGE);
    await page.evaluate(`start("daybreak-mini", "mini", { slots: 1 })`);
  });
  afterAll(async () => {
    await page?.[Symbol.asyncDispose]();
    await daemon?.stop();
  });

  async function ask(messages: readonly Message[], more: object = {}) {
    const body = {
      model: "daybreak-mini",
      messages,
      temperature: 0,
      max_tokens: 16,
      timings_per_token: true,
      ...more,
    };
    const answer = await page.evaluate(`ask("mini", "/v1/chat/completions", ${JSON.stringify(body)})`);
    const { choices, timings } = answerSchema.parse(answer).body;
    return { choice: choices[0]!, read: timings.prompt_n, reused: timings.cache_n };
  }

  test("reuses the cached prompts of two chats that alternate", async () => {
    const questions = [
      "Tell me about the mountains in the north and how long the way there takes on foot in the spring.",
      "Why do the birds in the garden sing so early in the morning, long before anybody else is awake?",
    ];
    const chats: Message[][] = questions.map((content) => [{ role: "user", content }]);
    const first: number[] = [];
    for (const chat of chats) {
      const { choice, read, reused } = await ask(chat);
      first.push(read + reused);
      chat.push(
        { role: "assistant", content: choice.message.content },
        { role: "user", content: "And why?" },
      );
    }
    for (const [at, chat] of chats.entries()) {
      const { choice, reused } = await ask(chat);
      // The chat template may encode the end of an answer with other tokens than the model generated.
      expect(reused).toBeGreaterThan(first[at]! - 8);
      const afresh = await ask(chat, { cache_prompt: false });
      expect(afresh.reused).toBe(0);
      expect(choice).toEqual(afresh.choice);
    }
  });
});
