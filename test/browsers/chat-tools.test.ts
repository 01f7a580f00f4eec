import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { serve, type ServerType } from "@hono/node-server";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { Hono } from "hono";
import { cors } from "hono/cors";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { findChromium } from "../support/launch-chromium.ts";
import { BrowserPage } from "../support/browser-page.ts";
import { PageActions } from "../support/page-actions.ts";
import { need } from "../support/need.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

const ABOUT_PARIS = "What is the weather in Paris?";
const PARAMETERS = JSON.stringify({
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
});

describe.skipIf(CHROMIUM.isMissing)(`a tool in the chat${CHROMIUM.note}`, () => {
  let daemon: TestDaemon;
  let page: BrowserPage;
  let on: PageActions;
  let mcp: ServerType;
  let mcpUrl: string;
  /** Cities in the calls that the MCP server received. */
  const asked: string[] = [];

  beforeAll(async () => {
    daemon = await startDaemon();
    const handler = createMcpHandler(() => weatherServer(asked));
    const app = new Hono().use(cors()).all("/mcp", async (context) => await handler.fetch(context.req.raw));
    mcp = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
    await once(mcp, "listening");
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on TCP
    mcpUrl = `http://127.0.0.1:${(mcp.address() as AddressInfo).port}/mcp`;
    page = await BrowserPage.open(chromium!, `${daemon.url}/ui/`);
    on = new PageActions(page);
    await on.ready();
    await on.set({ temperature: "0" });
  });
  afterAll(async () => {
    await page?.[Symbol.asyncDispose]();
    await daemon?.stop();
    mcp?.close();
  });
  beforeEach(async () => {
    await on.click("#new");
    await on.until(`document.querySelectorAll(".message").length === 0`);
  });

  async function makeTool(code: string): Promise<void> {
    await on.click("#show-tools");
    await on.click("#new-tool");
    await on.type("#tool-name", "get_weather");
    await on.type("#tool-description", "Get the weather of a city");
    await on.type("#tool-parameters", PARAMETERS);
    await on.type("#tool-code", code);
    await on.click("#save-tool");
    await on.until(`!document.querySelector("#tool")`);
    await on.click("#show-tools");
  }
  const deleteTool = async (): Promise<void> => {
    await on.click("#show-tools");
    await on.press("#tools li", "Delete");
    await on.until(`!document.querySelector("#tools > ul li")`);
    await on.click("#show-tools");
  };
  const send = async (text: string): Promise<void> => {
    await on.type("#prompt", text);
    await on.click("#send");
  };
  /** Returns the visible result of the tool call. */
  const result = () => on.textOf(`.tool-call [aria-label="Result"]`);
  const lastAnswer = () =>
    page.evaluate(`[...document.querySelectorAll(".assistant .markdown")].at(-1).textContent`);
  const untilFinished = () =>
    on.until(
      `document.querySelectorAll(".assistant").length === 2 && document.getElementById("stop").disabled`,
    );

  test("runs its JavaScript, and the model reads the result", async () => {
    await makeTool("return { temperature: args.city === 'Paris' ? 4 : 0, sky: 'rainy' };");
    await send(ABOUT_PARIS);
    await untilFinished();
    expect(JSON.parse(await on.textOf(`.tool-call [aria-label="Arguments"]`))).toEqual({ city: "Paris" });
    expect(JSON.parse(await result())).toEqual({ temperature: 4, sky: "rainy" });
    expect(await lastAnswer()).toMatch(/\b4\b|rain/);
    await deleteTool();
  });

  test("has no access to the page, its storage or the network", async () => {
    await makeTool(`
      const tried = {};
      for (const [name, attempt] of Object.entries({
        page: () => parent.document.title,
        storage: () => localStorage.length,
        database: () => new Promise((resolve, reject) => {
          const opening = indexedDB.open("daybreak");
          opening.onsuccess = resolve;
          opening.onerror = () => reject(opening.error);
        }),
        daemon: () => fetch(${JSON.stringify(daemon.url)} + "/api/models"),
        script: () => importScripts(${JSON.stringify(daemon.url)} + "/browser/daybreak.js"),
      })) tried[name] = await Promise.resolve().then(attempt).then(() => "reached", () => "refused");
      return tried;`);
    await send(ABOUT_PARIS);
    await untilFinished();
    expect(JSON.parse(await result())).toEqual({
      page: "refused",
      storage: "refused",
      database: "refused",
      daemon: "refused",
      script: "refused",
    });
    await deleteTool();
  });

  test("can be stopped while it runs, and the user may enter its result", async () => {
    await makeTool("await new Promise((resolve) => setTimeout(resolve, 20_000));");
    await send(ABOUT_PARIS);
    await on.until(`document.querySelector("iframe[sandbox]")`);
    expect(await page.evaluate(`document.getElementById("send").disabled`)).toBe(true);
    await on.click("#stop");
    await on.until(`document.querySelector(".decision textarea")`);
    expect(await on.count("iframe")).toBe(0);
    await on.type(".decision textarea", '{"temperature": 4, "sky": "rainy"}');
    await on.click(".give-result");
    await untilFinished();
    expect(await lastAnswer()).toMatch(/\b4\b|rain/);
    await deleteTool();
  });

  test("returns its error to the model", async () => {
    await makeTool("throw new Error('no such city');");
    await send(ABOUT_PARIS);
    await untilFinished();
    expect(await result()).toBe("Error: no such city");
    await deleteTool();
  });

  test("without JavaScript takes its result from the user, and the model continues", async () => {
    await makeTool("");
    await send(ABOUT_PARIS);
    await on.until(`document.querySelector(".decision textarea")`);
    await on.type(".decision textarea", '{"temperature": 4, "sky": "rainy"}');
    await on.click(".give-result");
    await untilFinished();
    expect(await lastAnswer()).toMatch(/\b4\b|rain/);
    await deleteTool();
  });

  test("of an MCP server is called only with the user's consent", async () => {
    await on.click("#show-tools");
    await on.type("#mcp-url", mcpUrl);
    await page.evaluate(`document.getElementById("mcp-server").requestSubmit()`);
    // The page reloads with a policy that allows the connection.
    await on.until(`location.search.includes("connect") && document.getElementById("model")?.value`);
    await on.click("#show-tools");
    await on.until(`document.querySelector(".mcp-status")?.textContent === "Connected: get_weather"`);
    await on.click("#show-tools");
    await on.set({ temperature: "0" });
    await send(ABOUT_PARIS);
    await on.until(`document.querySelector(".decision .run")`);
    expect(asked).toEqual([]);
    await on.click(".decision .run");
    await untilFinished();
    expect(asked).toEqual(["Paris"]);
    expect(await result()).toBe("4 degrees, rainy");
    expect(await lastAnswer()).toMatch(/\b4\b|rain/);
  });

  test("shows that its MCP server is unreachable", async () => {
    mcp.close();
    await on.click("#show-tools");
    await on.press("#tools li", "Connect again");
    await on.until(
      `document.querySelector(".mcp-status")?.textContent.startsWith("Cannot connect: it cannot be reached")`,
    );
    await on.press("#tools li", "Remove");
    await on.click("#show-tools");
    expect(await on.textOf("#problem")).toBe("");
  });
});

function weatherServer(asked: string[]): McpServer {
  const server = new McpServer({ name: "weather", version: "1.0.0" });
  server.registerTool(
    "get_weather",
    { description: "Get the weather of a city", inputSchema: z.object({ city: z.string() }) },
    ({ city }) => {
      asked.push(city);
      return { content: [{ type: "text", text: "4 degrees, rainy" }] };
    },
  );
  return server;
}
