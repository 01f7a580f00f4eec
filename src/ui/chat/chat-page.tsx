import "../../tab/older-browsers.ts";
import { render } from "preact";
import { App } from "./app.tsx";
import { refresh, running, start, startConversation } from "./chat-state.ts";

/** How often the page asks what the daemon has. */
const REFRESH_MS = 5000;

const root = document.getElementById("app");
if (!root) throw new Error("the page has no place for the app");
render(<App />, root);
await start();
setInterval(() => void refresh(), REFRESH_MS);

addEventListener("keydown", (event) => {
  if (event.key === "Escape") running.value?.abort();
  if (event.altKey && event.key === "n") startConversation();
});
