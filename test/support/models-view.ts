import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { BrowserPage } from "./browser-page.ts";
import { type FixtureHub, startFixtureHub } from "./fixture-hub.ts";
import { PageActions } from "./page-actions.ts";
import { shippedModel } from "./shared-daemon.ts";
import { startDaemon, type TestDaemon } from "./start-daemon.ts";

/** Checks for people who use a keyboard or a screen reader. */
const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** More than any engine can have. */
const HUGE = 41e9;

/** A model of the hub that can be pulled. */
export const TINY = "hf:ada/tiny-GGUF:Q8_0";
/** Its name when it is on disk. */
export const TINY_ALIAS = "hf:ada/tiny-GGUF:tiny-Q8_0.gguf";
export const GATED = "hf:bob/tiny-gated-GGUF:Q8_0";
/** A suggestion of configs/defaults.toml. */
export const SUGGESTED = "gemma3:270m";

/** Where the page shows a model of the daemon. */
export const card = (model: string) => `#installed [data-model='${model}']`;
export const download = (name: string) => `#downloads [data-pull='${name}']`;
export const offer = (spec: string) => `[data-spec='${spec}']`;
export const stored = (name: string) => `#stored [data-stored='${name}']`;

/** Actions of a user in the models view. */
export class ModelsView extends PageActions {
  /** Resolves when an element has these words. */
  readonly has = async (selector: string, text: string): Promise<void> => {
    const found = `document.querySelector(${JSON.stringify(selector)})?.textContent`;
    await this.until(`${found}?.includes(${JSON.stringify(text)})`);
  };

  readonly isThere = async (selector: string): Promise<void> => {
    await this.until(`document.querySelector(${JSON.stringify(selector)})`);
  };

  readonly isGone = async (selector: string): Promise<void> => {
    await this.until(`!document.querySelector(${JSON.stringify(selector)})`);
  };

  readonly submit = async (form: string): Promise<void> => {
    await this.page.evaluate(`document.querySelector(${JSON.stringify(form)}).requestSubmit()`);
  };

  /** Reads the value, or another property, of a field. */
  readonly fieldOf = async (selector: string, property = "value"): Promise<unknown> =>
    await this.page.evaluate(`document.querySelector(${JSON.stringify(selector)}).${property}`);

  /** Resolves when a model has exactly these marks beside its name. */
  readonly badges = async (model: string, ...wanted: string[]): Promise<void> => {
    const shown = `[...document.querySelectorAll(${JSON.stringify(`${card(model)} h3 .badge`)})]`;
    await this.until(`${shown}.map((each) => each.textContent).join() === ${JSON.stringify(wanted.join())}`);
  };

  readonly details = async (model: string): Promise<void> => {
    if ((await this.count(`${card(model)} .more[aria-expanded="true"]`)) === 0)
      await this.click(`${card(model)} .more`);
    await this.isThere(`${card(model)} .details`);
  };

  /** Opens a dialog by a button below a model's details. */
  readonly open = async (model: string, button: string): Promise<void> => {
    await this.details(model);
    await this.press(card(model), button);
    await this.isThere("dialog[open]");
  };

  readonly search = async (words: string): Promise<void> => {
    await this.type("#hub-query", words);
    await this.submit("form.search");
  };

  /** Shows what a repository offers. */
  readonly offers = async (repo: string): Promise<void> => {
    await this.search(repo);
    await this.until(`(() => {
      const [found, ...others] = document.querySelectorAll(".repos > li");
      const isIt = found?.querySelector("strong").textContent === ${JSON.stringify(repo)};
      return others.length === 0 && isIt && found.querySelector(".offers");
    })()`);
  };

  /** Deletes what a dialog has just been opened for. */
  readonly confirm = async (gone: string): Promise<void> => {
    await this.press("dialog", "Delete");
    await this.isGone(gone);
  };

  /** Violations that axe finds. */
  readonly violations = async (): Promise<unknown> => {
    await this.page.evaluate(AXE);
    return await this.page.evaluate(`axe.run().then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" ")))`);
  };
}

export interface OpenModelsView extends AsyncDisposable {
  readonly daemon: TestDaemon;
  readonly hub: FixtureHub;
  readonly page: BrowserPage;
  readonly on: ModelsView;
}

/** A daemon with a hub, and a page that shows its models. */
export async function openModelsView(chromium: string): Promise<OpenModelsView> {
  const model = shippedModel();
  const hub = await startFixtureHub({
    repos: {
      "ada/tiny-GGUF": {
        files: { "tiny-Q8_0.gguf": model, "tiny-BF16.gguf": { content: "x", claimedSize: HUGE } },
        info: {
          downloads: 123_456,
          likes: 3,
          lastModified: "2026-05-06T12:00:00.000Z",
          gguf: { total: 4.4e6, architecture: "llama", context_length: 2048 },
        },
      },
      "bob/tiny-gated-GGUF": { files: { "tiny-gated-Q8_0.gguf": model }, gatedTo: ["a token"] },
      "ggml-org/gemma-3-270m-it-GGUF": { files: { "gemma-3-270m-it-Q8_0.gguf": model } },
    },
  });
  const daemon = await startDaemon({ args: ["--auto-load"], env: { HUB_URL: hub.url } });
  const page = await BrowserPage.open(chromium, `${daemon.url}/ui/`);
  const on = new ModelsView(page);
  await on.ready();
  return {
    daemon,
    hub,
    page,
    on,
    async [Symbol.asyncDispose]() {
      await page[Symbol.asyncDispose]();
      await daemon.stop();
      await hub.close();
    },
  };
}
