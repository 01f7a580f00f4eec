import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findChromium } from "../support/launch-chromium.ts";
import { BrowserPage } from "../support/browser-page.ts";
import { PageActions } from "../support/page-actions.ts";
import { need } from "../support/need.ts";
import { startDaemon, type TestDaemon } from "../support/start-daemon.ts";
import { startStateServer, type StateServer } from "../support/state-server.ts";

const chromium = findChromium();
const CHROMIUM = need("Chromium", chromium !== undefined);

const KEY = "a-key-of-this-test";
const QUESTION = "What is Daybreak?";
const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** Address at which no server listens. */
const UNREACHABLE = "http://127.0.0.1:1";

describe.skipIf(CHROMIUM.isMissing)(`the page as an app${CHROMIUM.note}`, () => {
  let own: TestDaemon;
  let keyed: TestDaemon;
  let page: BrowserPage;
  let on: PageActions;
  let states: StateServer;
  beforeAll(async () => {
    states = await startStateServer();
    [own, keyed] = await Promise.all([startDaemon(), startDaemon({ env: { SERVICE_API_KEYS: KEY } })]);
    page = await BrowserPage.open(chromium!, `${own.url}/ui/`);
    on = new PageActions(page);
    await on.ready();
  });
  afterAll(async () => {
    await page?.[Symbol.asyncDispose]();
    await Promise.all([own?.stop(), keyed?.stop(), states?.close()]);
  });

  const openDaemons = async (): Promise<void> => {
    await on.click("#daemons");
    await on.until(`document.querySelector("#daemon-dialog[open]")`);
  };
  const closeDaemons = async (): Promise<void> => {
    await on.click("#close-daemons");
    await on.until(`!document.getElementById("daemon-dialog")`);
  };
  /** Adds a daemon in the dialog, which reloads the page. */
  const add = async (address: string, name: string, key = ""): Promise<void> => {
    await openDaemons();
    for (const [field, text] of Object.entries({ address, name, key }))
      await on.type(`#add-daemon [name="${field}"]`, text);
    await leave(`document.getElementById("add-daemon").requestSubmit()`);
  };
  /** Chooses an entry of the dialog by its name. */
  const choose = async (name: string): Promise<void> => {
    await openDaemons();
    await leave(`[...document.querySelectorAll("#daemon-dialog .choice")]
      .find((each) => each.textContent.includes(${JSON.stringify(name)})).click()`);
  };
  /** Evaluates an expression that reloads the page, and waits for the reload. */
  const leave = async (expression: string): Promise<void> => {
    await page.evaluate(`globalThis.isOld = true; ${expression}`);
    await on.until(`globalThis.isOld === undefined && document.getElementById("daemons")`);
  };
  const banner = (text: string): Promise<void> =>
    on.until(`document.getElementById("connection")?.textContent.includes(${JSON.stringify(text)})`);

  test("shows the links to all views if there is a daemon", async () => {
    expect(await on.textOf("nav")).toBe("ChatModelsMonitorExperimentsAPI");
    expect(await on.textOf("#daemons")).toContain(new URL(own.url).host);
  });

  test("asks for the API key of a daemon, again if it is wrong, and stores it", async () => {
    await add(keyed.url, "Attic");
    await on.until(`document.querySelector("#key-dialog[open]")`);
    expect(await on.textOf("#key-dialog p")).toContain(`Attic (${new URL(keyed.url).host})`);
    await on.type("#key", "wrong");
    await on.click("#use-key");
    await on.until(`document.querySelector("#key-dialog p")?.textContent.includes("does not take this key")`);
    await on.type("#key", KEY);
    await on.click("#use-key");
    await on.ready();
    expect(await on.textOf("#status")).toBe("Connected to Attic");
    await leave("location.reload()");
    await on.ready();
    expect(await on.count("#key-dialog")).toBe(0);
  });

  test("uses the chosen daemon for answers, and downloads models for the tab from it", async () => {
    await on.set({ temperature: "0" });
    const before = page.requests.length;
    const answer = await on.ask(QUESTION);
    expect(answer).toMatch(/^Daybreak/);
    const asked = page.requests.slice(before).filter((url) => url.includes("/api/chat"));
    expect([...new Set(asked)]).toEqual([`${keyed.url}/api/chat`]);
    await on.click("#new");
    await on.click("#in-tab");
    expect(await on.ask(QUESTION)).toBe(answer);
    expect(keyed.logs()).toMatch(/api\/models\/daybreak-mini\/files\/0/);
    expect(own.logs()).not.toMatch(/api\/models\/daybreak-mini\/files/);
    await on.click("#in-tab");
    expect(page.problems.filter((text) => !text.includes("401"))).toEqual([]);
  });

  test("stores a key for the session only if the user chooses that", async () => {
    await page.evaluate(`(() => {
      const kept = JSON.parse(localStorage.getItem("daybreak-daemons"));
      localStorage.setItem("daybreak-daemons", JSON.stringify({ ...kept, keys: {} }));
    })()`);
    await leave("location.reload()");
    await on.until(`document.querySelector("#key-dialog[open]")`);
    await on.click("#keep-key");
    await on.type("#key", KEY);
    await on.click("#use-key");
    await on.ready();
    expect(await page.evaluate(`localStorage.getItem("daybreak-daemons").includes("${KEY}")`)).toBe(false);
    expect(await page.evaluate(`sessionStorage.getItem("daybreak-keys").includes("${KEY}")`)).toBe(true);
    await leave("location.reload()");
    await on.ready();
    expect(await on.count("#key-dialog")).toBe(0);
  });

  test("does not ask for a key again after the dialog was closed, until the user requests it", async () => {
    await page.evaluate(`sessionStorage.clear()`);
    await leave("location.reload()");
    await on.until(`document.querySelector("#key-dialog[open]")`);
    await on.press("#key-dialog", "Not now");
    await banner("answers only with an API key");
    const before = page.requests.length;
    await page.evaluate(`dispatchEvent(new Event("online"))`);
    const asked = (): string[] => page.requests.slice(before).filter((url) => url.endsWith("/api/models"));
    await expect.poll(asked).not.toEqual([]);
    expect(await on.count("#key-dialog")).toBe(0);
    await on.click("#give-key");
    await on.until(`document.querySelector("#key-dialog[open]")`);
    await on.type("#key", KEY);
    await on.click("#use-key");
    await on.ready();
  });

  test("explains what to do if a daemon is unreachable or rejects the page", async () => {
    await add(UNREACHABLE, "Nobody");
    await banner("Nobody (127.0.0.1:1) cannot be reached.");
    const shy = await startDaemon({ env: { SERVICE_HTTP_CORS_ORIGINS: "https://another.example" } });
    try {
      await add(shy.url, "Shy");
      await banner(`Add ${own.url} to http.cors_origins (SERVICE_HTTP_CORS_ORIGINS) there`);
    } finally {
      await shy.stop();
    }
    await openDaemons();
    await on.type(`#add-daemon [name="address"]`, "not an address");
    await page.evaluate(`document.getElementById("add-daemon").requestSubmit()`);
    await on.until(`document.querySelector("#add-daemon .failed")`);
    expect(await on.textOf("#add-daemon .failed")).toContain("is not the address of a daemon");
    await closeDaemons();
  });

  test("reports that a daemon is starting, ending, unreachable or back", async () => {
    states.state = "starting";
    await add(states.url, "Other");
    await banner("The daemon is starting");
    states.state = "draining";
    await page.evaluate(`dispatchEvent(new Event("online"))`);
    await banner("The daemon is ending");
    await states.close();
    await page.evaluate(`dispatchEvent(new Event("online"))`);
    await banner("cannot be reached");
    expect(await on.textOf("#connection")).toMatch(/Unreachable since \d+:\d+/);
    states = await startStateServer(states.url);
    states.state = "starting";
    await on.click("#retry");
    await banner("The daemon is starting");
    states.state = "ok";
    await page.evaluate(`dispatchEvent(new Event("online"))`);
    await banner("The daemon is back.");
  });

  test("removes daemons, and may no longer connect to them", async () => {
    for (const name of ["Attic", "Nobody", "Shy"]) {
      await openDaemons();
      await on.click(`[title="Remove ${name}"]`);
      await on.until(`!document.querySelector('[title="Remove ${name}"]')`);
      await closeDaemons();
    }
    await openDaemons();
    await leave(`document.querySelector('[title="Remove Other"]').click()`);
    await on.ready();
    expect(await page.evaluate("location.search")).toBe("");
    expect(await page.evaluate(`fetch("${keyed.url}/health").then(() => "asked", () => "refused")`)).toBe(
      "refused",
    );
  });

  test("does not connect to servers in the URL of a link", async () => {
    await page.evaluate(`location.href = "/ui/?connect=https%3A%2F%2Fevil.example#/models"`);
    await on.until(`location.search === "" && document.getElementById("models")`);
    expect(await page.evaluate("location.hash")).toBe("#/models");
    await on.enter("");
    await on.ready();
  });

  test.each(["light", "dark"])(
    "has no accessibility violations in dialogs and banners in the %s scheme",
    async (scheme) => {
      await page.prefer(scheme);
      await page.resize(360, 800);
      await add(UNREACHABLE, "Nobody");
      await banner("cannot be reached");
      await openDaemons();
      await page.evaluate(AXE);
      const violations = (part: string): Promise<unknown> =>
        page.evaluate(`axe.run("${part}").then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" ")))`);
      expect(await violations("#daemon-dialog")).toEqual([]);
      await closeDaemons();
      for (const part of ["header", "#connection"]) expect(await violations(part)).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(360);
      await openDaemons();
      await leave(`document.querySelector('[title="Remove Nobody"]').click()`);
      await on.ready();
    },
  );

  test("runs models in the browser only, without requests to a daemon, if that is chosen", async () => {
    await choose("This browser only");
    expect(await on.textOf("nav")).toBe("ChatModels");
    await on.until(`document.getElementById("model").value`);
    expect(await on.textOf("#model")).toBe("daybreak-mini (in this browser)");
    const before = page.requests.length;
    await on.set({ temperature: "0" });
    expect(await on.ask(QUESTION)).toMatch(/^Daybreak/);
    const asked = page.requests.slice(before).filter((url) => url.includes("/api/"));
    expect(asked).toEqual([]);
    await choose("This daemon");
    await on.ready();
  });

  test("connects to the hub only after the user has allowed it", async () => {
    await choose("This browser only");
    await on.enter("#/models");
    const canDownload = `document.querySelector('#from-hub [type="submit"]') !== null`;
    expect(await page.evaluate(canDownload)).toBe(false);
    await leave(`document.getElementById("allow-hub").click()`);
    await on.until(canDownload);
    expect(await page.evaluate(`new URLSearchParams(location.search).get("connect")`)).toBe(
      "https://*.hf.co https://*.huggingface.co https://huggingface.co",
    );
    await on.enter("");
    await choose("This daemon");
    await on.ready();
  });

  test("asks for the key on the experiments page as well, which loads without one", async () => {
    await using tab = await page.openTab(`${keyed.url}/ui/experiments/`);
    const there = new PageActions(tab);
    await there.until(`document.querySelector("#key-dialog[open]")`);
    await there.type("#key", KEY);
    await there.click("#use-key");
    await there.until(`document.querySelector("#model option")`);
    await tab.evaluate(`location.href = "/ui/"`);
    await there.until(`location.pathname === "/ui/"`);
    await there.ready();
    expect(await there.count("#key-dialog")).toBe(0);
    await there.enter("#/monitor");
    await there.until(`document.getElementById("monitor").textContent.includes("● Live")`);
  });

  test("lists models that only the browser has together with those of the daemon, and runs them in the tab", async () => {
    await page.evaluate(`(async () => {
      const { ModelStore } = await import("/browser/daybreak.js");
      const blob = await (await fetch("/api/models/daybreak-mini/files/0")).blob();
      await new ModelStore().add("mine", [new File([blob], "mine.gguf")]);
      dispatchEvent(new Event("online"));
    })()`);
    await on.until(`[...document.getElementById("model").options].some(({ value }) => value === "mine")`);
    expect(await on.textOf("#model")).toMatch(/daybreak-mini.*mine \(in this browser\)/);
    await on.click("#new");
    await on.type("#model", "mine");
    await on.set({ temperature: "0" });
    const before = page.requests.length;
    expect(await on.ask(QUESTION)).toMatch(/^Daybreak/);
    expect(page.requests.slice(before).filter((url) => url.includes("/api/chat"))).toEqual([]);
    await page.evaluate(`(async () => {
      const { ModelStore } = await import("/browser/daybreak.js");
      await new ModelStore().delete("mine");
      dispatchEvent(new Event("online"));
    })()`);
    await on.until(`![...document.getElementById("model").options].some(({ value }) => value === "mine")`);
  });

  test("opens and answers while the daemon is down, and reconnects to it afterwards", async () => {
    await page.evaluate("navigator.serviceWorker.ready");
    const { port } = new URL(own.url);
    own.kill("SIGKILL");
    await own.exited;
    await leave("location.reload()");
    await banner("cannot be reached");
    await on.until(`document.getElementById("model").value`);
    const policy = `fetch(location.href).then(({ headers }) => headers.get("content-security-policy"))`;
    expect(await page.evaluate(policy)).toContain(
      "https://*.hf.co https://*.huggingface.co https://huggingface.co;",
    );
    expect(await on.textOf("#model")).toBe("daybreak-mini (in this browser)");
    expect(await page.evaluate("crossOriginIsolated")).toBe(true);
    await on.set({ temperature: "0" });
    expect(await on.ask(QUESTION)).toMatch(/^Daybreak/);
    await on.enter("#/models");
    expect(await page.evaluate("document.readyState")).toBe("complete");
    await on.enter("");
    await on.until(`document.querySelector("#messages .summary")`);
    // The banner is visible for some seconds only, which may be over before startDaemon() returns.
    [own] = await Promise.all([startDaemon({ args: ["--http-port", port] }), banner("The daemon is back.")]);
    await on.ready();
  });
});
