import "../../tab/older-browsers.ts";
import { render } from "preact";
import { loadChats } from "../chat/chat-state.ts";
import { namesHere } from "../models/kept-pulls.ts";
import { refresh } from "../page-state.ts";
import { App } from "./app.tsx";

/** How often the page asks what the daemon has. */
const REFRESH_MS = 5000;

const root = document.getElementById("app");
if (!root) throw new Error("the page has no place for the app");
render(<App />, root);
// Downloads that this tab ran go on, whatever room is shown.
if (namesHere().length > 0) void import("../models/pulls.ts");
await Promise.all([loadChats(), refresh()]);
setInterval(() => void refresh(), REFRESH_MS);
