import "../../tab/older-browsers.ts";
import { render } from "preact";
import { loadChats } from "../chat/chat-state.ts";
import { runningPulls } from "../models/stored-pulls.ts";
import { updateAllowed } from "./allowed-servers.ts";
import { prepareMath } from "../markdown/markdown.tsx";
import { App } from "./app.tsx";
import { startPolling } from "./connection-banner.tsx";
import { installServiceWorker } from "./persist-page.ts";

/** Delay of preloading, so that it does not compete with the first rendering. */
const IDLE_MS = 1000;

const root = document.getElementById("app");
if (!root) throw new Error('the page has no element with the ID "app"');
if (!updateAllowed()) {
  render(<App />, root);
  startPolling();
  // Downloads that ran in this tab continue in all views.
  if (runningPulls().length > 0) void import("../models/pulls.ts");
  await Promise.all([loadChats(), installServiceWorker()]);
  setTimeout(prepareMath, IDLE_MS);
}
