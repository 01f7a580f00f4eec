import { BrowserPage } from "./browser-page.ts";
import { startDaemon, type TestDaemon } from "./start-daemon.ts";

const VIEW_ELEMENTS = { "": "#chat", "#/models": "#models", "#/monitor": "#monitor" } as const;

/** Actions of a user on the page under /ui/, by selectors. */
export class PageActions {
  readonly page: BrowserPage;

  constructor(page: BrowserPage) {
    this.page = page;
  }

  readonly until = (expression: string): Promise<void> => this.page.until(expression);

  /** Resolves when the page knows the daemon's models. */
  readonly ready = (): Promise<void> =>
    this.until(`document.getElementById("status")?.textContent.startsWith("Connected")
    && document.getElementById("model")?.value`);

  readonly click = async (selector: string): Promise<void> => {
    await this.page.evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`);
  };

  /** Presses the button with these words in an element. */
  readonly press = async (within: string, label: string): Promise<void> => {
    await this.page.evaluate(`[...document.querySelectorAll(${JSON.stringify(`${within} button`)})]
      .find(({ textContent }) => textContent.trim() === ${JSON.stringify(label)}).click()`);
  };

  readonly textOf = async (selector: string): Promise<string> =>
    String(await this.page.evaluate(`document.querySelector(${JSON.stringify(selector)})?.textContent`));

  readonly count = async (selector: string): Promise<number> =>
    Number(await this.page.evaluate(`document.querySelectorAll(${JSON.stringify(selector)}).length`));

  readonly type = async (selector: string, text: string): Promise<void> => {
    await this.page.evaluate(`(() => {
      const field = document.querySelector(${JSON.stringify(selector)});
      field.value = ${JSON.stringify(text)};
      field.dispatchEvent(new Event("input", { bubbles: true }));
      field.dispatchEvent(new Event("change", { bubbles: true }));
    })()`);
  };

  /** Opens a view of the page by its address. */
  readonly enter = async (address: keyof typeof VIEW_ELEMENTS): Promise<void> => {
    await this.page.evaluate(`location.hash = ${JSON.stringify(address)}`);
    await this.until(`document.querySelector(${JSON.stringify(VIEW_ELEMENTS[address])})`);
  };

  /** Resolves when nothing is answered any longer. */
  readonly answered = (): Promise<void> => this.until(`document.getElementById("stop").disabled`);

  /** Asks in the chat, and gives the answer as text. */
  readonly ask = async (text: string): Promise<string> => {
    await this.type("#prompt", text);
    await this.click("#send");
    await this.until(
      `!document.getElementById("stop").disabled || document.querySelector(".assistant:last-of-type .summary")`,
    );
    await this.answered();
    return await this.textOf(".assistant:last-of-type .markdown");
  };

  /** Changes settings of the conversation. */
  readonly set = async (values: Readonly<Record<string, string>>): Promise<void> => {
    await this.click("#show-settings");
    for (const [name, value] of Object.entries(values)) await this.type(`#${name}`, value);
    await this.click("#show-settings");
  };
}

export interface OpenPage extends AsyncDisposable {
  readonly daemon: TestDaemon;
  readonly page: BrowserPage;
  readonly on: PageActions;
}

/** A daemon with the models that ship, and its page in a browser. */
export async function openPage(chromium: string): Promise<OpenPage> {
  const daemon = await startDaemon({ args: ["--auto-load"] });
  const page = await BrowserPage.open(chromium, `${daemon.url}/ui/`);
  const on = new PageActions(page);
  await on.ready();
  return {
    daemon,
    page,
    on,
    async [Symbol.asyncDispose]() {
      await page[Symbol.asyncDispose]();
      await daemon.stop();
    },
  };
}
