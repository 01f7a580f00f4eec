import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { type OpenPage, openPage } from "../support/page-actions.ts";

/** Opens the page before the tests of a block. Each test starts in an empty chat. Returns a folder for test files. */
export function setUpChatPage(chromium: string, onOpen: (opened: OpenPage) => void): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-chat-"));
  let opened: OpenPage;
  beforeAll(async () => {
    opened = await openPage(chromium);
    onOpen(opened);
  });
  afterAll(async () => {
    await opened?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });
  beforeEach(async () => {
    await opened.on.click("#new");
    await opened.on.until(`document.querySelectorAll(".message").length === 0`);
  });
  return folder;
}
