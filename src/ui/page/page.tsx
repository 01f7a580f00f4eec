import "../../tab/older-browsers.ts";
import { render } from "preact";
import { loadChats } from "../chat/chat-state.ts";
import { namesHere } from "../models/stored-pulls.ts";
import { keepAllowed } from "./allowed-servers.ts";
import { prepareMath } from "../markdown/markdown.tsx";
import { App } from "./app.tsx";
import { keepConnected } from "./connection-banner.tsx";
import { keepPage } from "./persist-page.ts";

/** After this long the page has been drawn, and a person still reads it. */
const IDLE_MS = 1000;

const root = document.getElementById("app");
if (!root) throw new Error("the page has no place for the app");
if (!keepAllowed()) {
  render(<App />, root);
  keepConnected();
  // Downloads that this tab ran go on, whatever room is shown.
  if (namesHere().length > 0) void import("../models/pulls.ts");
  await Promise.all([loadChats(), keepPage()]);
  setTimeout(prepareMath, IDLE_MS);
}
