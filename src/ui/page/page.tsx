import "../../tab/older-browsers.ts";
import { render } from "preact";
import { loadChats } from "../chat/chat-state.ts";
import { refresh } from "../page-state.ts";
import { loadWithServers } from "./allowed-servers.ts";
import { App } from "./app.tsx";

/** How often the page asks what the daemon has. */
const REFRESH_MS = 5000;

loadWithServers();
const root = document.getElementById("app");
if (!root) throw new Error("the page has no place for the app");
render(<App />, root);
await Promise.all([loadChats(), refresh()]);
setInterval(() => void refresh(), REFRESH_MS);
