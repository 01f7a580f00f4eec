import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findChromium } from "../support/launch-chromium.ts";
import { BrowserPage } from "../support/browser-page.ts";
import { NATS } from "../support/nats-server.ts";
import { PageActions } from "../support/page-actions.ts";
import { both, need } from "../support/need.ts";
import { FLEET_MODEL, TestFleet } from "../support/test-fleet.ts";

const chromium = findChromium();
const NEEDS = both(need("Chromium", chromium !== undefined), NATS);

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

describe.skipIf(NEEDS.isMissing)(`the monitor of a fleet${NEEDS.note}`, () => {
  let fleet: TestFleet;
  let page: BrowserPage;
  let on: PageActions;
  beforeAll(async () => {
    fleet = await TestFleet.start();
    const [first] = await Promise.all([fleet.join("desk"), fleet.join("loft", { hasModel: false })]);
    await fleet.complete(first, 2, 1);
    page = await BrowserPage.open(chromium!, `${first.url}/ui/#/monitor`);
    on = new PageActions(page);
    await on.until(`document.querySelectorAll("#fleet > li").length === 2`);
  });
  afterAll(async () => {
    await page?.[Symbol.asyncDispose]();
    await fleet?.stop();
  });

  test("shows each machine with its models, this one first", async () => {
    expect(await on.textOf("#fleet > li")).toMatch(
      /^desk this machine, readyRequests0 runningMemory of models\d.* of \d/,
    );
    expect(await on.textOf("#fleet > li > .models")).toContain(`${FLEET_MODEL} 0 of `);
    expect(await on.textOf("#fleet > li:last-child")).toMatch(
      /^loft ready.*daybreak-mini 0 of \d+ requestsOn disk only: \d+daybreak-mini-embed \d/,
    );
  });

  test("has no accessibility violations, and needs no scrolling sideways", async () => {
    await page.resize(360, 800);
    await page.evaluate(`document.querySelectorAll("#fleet details").forEach((each) => (each.open = true))`);
    // Charts are resized asynchronously.
    await on.until("document.documentElement.scrollWidth <= 360");
    await page.evaluate(AXE);
    const violations = await page.evaluate(`axe.run("#monitor").then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" ")))`);
    expect(violations).toEqual([]);
  });

  test("reports that the machine works alone while the NATS server is unreachable", async () => {
    await fleet.nats.kill("SIGKILL");
    // Opening the view again polls immediately.
    await on.enter("");
    await on.enter("#/monitor");
    await on.until(
      `document.querySelector("#fleet-title + .failed") && document.querySelectorAll("#fleet > li").length === 1`,
    );
    expect(await on.textOf("#fleet-title + .failed")).toContain("working alone");
  });
});
