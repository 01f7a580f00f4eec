import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { allowServer, forgetServer } from "../page/allowed-servers.ts";
import { showProblem } from "../page-state.ts";
import { connect, serverStates } from "./mcp-tools.ts";
import { mcpServers, type McpServer } from "./tool-store.ts";

/** Servers whose tools models may call. */
export function McpServersForm(): JSX.Element {
  const url = useSignal("");
  const token = useSignal("");
  const add = (): void => {
    const others = mcpServers.value.filter((each) => each.url !== url.value);
    mcpServers.value = [...others, { url: url.value, token: token.value, asksFirst: true, isOn: true }];
    // The page may have to load itself again, with a policy that lets it connect there.
    try {
      allowServer(new URL(url.value).origin);
    } catch (error) {
      mcpServers.value = others;
      showProblem(error);
      return;
    }
    url.value = "";
    token.value = "";
  };
  return (
    <>
      <h3>MCP servers</h3>
      <ul>
        {mcpServers.value.map((server) => (
          <Server key={server.url} server={server} />
        ))}
      </ul>
      <form
        id="mcp-server"
        class="fields"
        onSubmit={(event) => {
          event.preventDefault();
          add();
        }}
      >
        <label>
          Address (streamable HTTP)
          <input
            id="mcp-url"
            type="url"
            required
            pattern="https?://.+"
            placeholder="http://127.0.0.1:3000/mcp"
            value={url}
            onInput={({ currentTarget }) => (url.value = currentTarget.value)}
          />
        </label>
        <label>
          Token, if it asks for one
          <input
            id="mcp-token"
            type="password"
            autocomplete="off"
            value={token}
            onInput={({ currentTarget }) => (token.value = currentTarget.value)}
          />
        </label>
        <button id="add-mcp" type="submit">
          Add server
        </button>
      </form>
    </>
  );
}

function remove({ url }: McpServer): void {
  mcpServers.value = mcpServers.value.filter((each) => each.url !== url);
  const { origin } = new URL(url);
  if (!mcpServers.value.some((each) => new URL(each.url).origin === origin)) forgetServer(origin);
}

function Server({ server }: { readonly server: McpServer }): JSX.Element {
  const { url, isOn, asksFirst } = server;
  const change = (changed: Partial<McpServer>): void => {
    const now = { ...server, ...changed };
    mcpServers.value = mcpServers.value.map((each) => (each.url === url ? now : each));
  };
  return (
    <li>
      <label class="choice">
        <input
          type="checkbox"
          checked={isOn}
          onChange={({ currentTarget }) => change({ isOn: currentTarget.checked })}
        />
        {url}
      </label>{" "}
      <small class="mcp-status" role="status">
        {serverStates.value.get(url)?.status ?? "off"}
      </small>
      <label class="choice">
        <input
          class="asks-first"
          type="checkbox"
          checked={asksFirst}
          onChange={({ currentTarget }) => change({ asksFirst: currentTarget.checked })}
        />
        Ask me before each call
      </label>
      <button type="button" disabled={!isOn} onClick={() => void connect(server)}>
        Connect again
      </button>
      <button type="button" onClick={() => remove(server)}>
        Remove
      </button>
    </li>
  );
}
