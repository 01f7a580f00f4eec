import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { Button, Choice, Form, bound } from "../controls.tsx";
import { isRecord } from "../../json/json-values.ts";
import { toError } from "../../errors/service-error.ts";
import { showProblem } from "../page-state.ts";
import { allowServer, forgetServer } from "../page/allowed-servers.ts";
import { connect, type McpServer, mcpServers, serverStates, type UserTool, userTools } from "./tools.ts";

/** Pattern of function names in the APIs. */
const NAME_PATTERN = "[a-zA-Z0-9_\\-]{1,64}";

const NEW_TOOL: UserTool = {
  name: "",
  description: "",
  parameters: `{
  "type": "object",
  "properties": { "text": { "type": "string", "description": "What it is" } },
  "required": ["text"]
}`,
  code: "",
  isOn: true,
};

/** Forms for the user's tools and for MCP servers. */
export function ToolsForm(): JSX.Element {
  const edited = useSignal<UserTool | undefined>(undefined);
  return (
    <section id="tools" aria-label="Tools">
      <h2>Tools</h2>
      <p class="explained">
        A model that knows tools may call these, in every conversation. Their JavaScript runs in a sandbox,
        without network and without access to this page.
      </p>
      <ul>
        {userTools.value.map((tool, index) => (
          <li key={tool.name}>
            <Choice
              checked={tool.isOn}
              onChange={(isChecked) =>
                (userTools.value = userTools.value.with(index, { ...tool, isOn: isChecked }))
              }
            >
              <code>{tool.name}</code>
            </Choice>{" "}
            {tool.description} <small>{tool.code.trim() === "" ? "you answer" : "runs JavaScript"}</small>{" "}
            <Button onClick={() => (edited.value = tool)}>Edit</Button>
            <Button
              onClick={() => (userTools.value = userTools.value.filter(({ name }) => name !== tool.name))}
            >
              Delete
            </Button>
          </li>
        ))}
      </ul>
      {edited.value ? (
        <ToolForm key={edited.value.name} tool={edited.value} onDone={() => (edited.value = undefined)} />
      ) : (
        <Button id="new-tool" onClick={() => (edited.value = NEW_TOOL)}>
          New tool
        </Button>
      )}
      <McpServersForm />
    </section>
  );
}

function ToolForm({ tool, onDone }: { readonly tool: UserTool; readonly onDone: () => void }): JSX.Element {
  const draft = useSignal(tool);
  const problem = useSignal("");
  const set = (change: Partial<UserTool>): void => void (draft.value = { ...draft.value, ...change });
  const save = (): void => {
    const { name, parameters } = draft.value;
    problem.value = problemOf(parameters);
    if (problem.value !== "") return;
    const others = userTools.value.filter((each) => each.name !== tool.name && each.name !== name);
    userTools.value = [...others, draft.value];
    onDone();
  };
  return (
    <Form id="tool" class="editor" onSubmit={save}>
      <label>
        Name
        <input
          id="tool-name"
          placeholder="letters, digits, _ and -"
          required
          pattern={NAME_PATTERN}
          title="Letters, digits, _ and -"
          value={draft.value.name}
          onInput={({ currentTarget }) => set({ name: currentTarget.value })}
        />
      </label>
      <label>
        What it does, for the model
        <input
          id="tool-description"
          value={draft.value.description}
          onInput={({ currentTarget }) => set({ description: currentTarget.value })}
        />
      </label>
      <label>
        Parameters, as JSON Schema
        <textarea
          id="tool-parameters"
          class="code"
          rows={4}
          value={draft.value.parameters}
          onInput={({ currentTarget }) => set({ parameters: currentTarget.value })}
        />
      </label>
      <label>
        JavaScript: the body of an async function of <code>args</code>, whose result the model reads. Leave it
        empty to answer calls yourself.
        <textarea
          id="tool-code"
          class="code"
          rows={4}
          placeholder="return args.a + args.b;"
          value={draft.value.code}
          onInput={({ currentTarget }) => set({ code: currentTarget.value })}
        />
      </label>
      {problem.value !== "" && <p class="failed">{problem}</p>}
      <p class="buttons">
        <button id="save-tool" type="submit">
          Save tool
        </button>
        <Button onClick={onDone}>Cancel</Button>
      </p>
    </Form>
  );
}

/** Returns the problem of a parameter schema, or an empty text. */
function problemOf(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (isRecord(value)) return "";
    return 'The parameters must be a JSON Schema such as {"type": "object", "properties": {}}.';
  } catch (error) {
    return `The parameters are not valid JSON: ${toError(error).message}.`;
  }
}

function McpServersForm(): JSX.Element {
  const url = useSignal("");
  const token = useSignal("");
  const addServer = (): void => {
    const others = mcpServers.value.filter((each) => each.url !== url.value);
    mcpServers.value = [...others, { url: url.value, token: token.value, asksFirst: true, isOn: true }];
    // The page may have to reload, with a policy that allows the connection.
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
      <Form id="mcp-server" class="fields" onSubmit={addServer}>
        <label>
          Address (streamable HTTP)
          <input
            id="mcp-url"
            type="url"
            required
            pattern="https?://.+"
            placeholder="http://127.0.0.1:3000/mcp"
            {...bound(url)}
          />
        </label>
        <label>
          Token, if it asks for one
          <input id="mcp-token" type="password" autocomplete="off" {...bound(token)} />
        </label>
        <button id="add-mcp" type="submit">
          Add server
        </button>
      </Form>
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
      <Choice checked={isOn} onChange={(isChecked) => change({ isOn: isChecked })}>
        {url}
      </Choice>{" "}
      <small class="mcp-status" role="status">
        {serverStates.value.get(url)?.status ?? "off"}
      </small>
      <Choice
        class="asks-first"
        checked={asksFirst}
        onChange={(isChecked) => change({ asksFirst: isChecked })}
      >
        Ask me before each call
      </Choice>
      <Button disabled={!isOn} onClick={() => void connect(server)}>
        Connect again
      </Button>
      <Button onClick={() => remove(server)}>Remove</Button>
    </li>
  );
}
