import { configSchema } from "../../src/config/schema.ts";
import { documentedDialects } from "../../src/daemon/dialects.ts";
import type { ManagementServices } from "../../src/dialects/management/management-services.ts";
import { describedFields } from "./described-fields.ts";
import { openApiPath } from "../../src/http/openapi-document.ts";
import type { Route } from "../../src/http/route.ts";

const PROSE = `# The API

<!-- Made by scripts/docs/generate.ts; the prose is in scripts/docs/api-page.ts, the rest comes from the routes' own schemas. -->

A running daemon describes itself: \`/docs\` is a page to read and to try, \`/openapi.json\` an OpenAPI 3.1 document with every field.

Bodies are JSON. Streams are newline-delimited JSON (\`application/x-ndjson\`) on the daemon's own routes and server-sent events on those under \`/v1\`. Errors are described in [errors.md](errors.md), settings in [configuration.md](configuration.md).

## What holds for every route

- **Request id.** Every answer has \`x-request-id\`; a sane one of the client's (up to 128 letters, digits and \`.:+/=@_-\`) is kept. The log has it too.
- **Content type.** The body must be declared as JSON, else 415. So that \`curl -d '{…}'\` works without a header, curl's default type and a missing one are accepted as well, but only from clients that are not web pages (no \`Origin\`, no \`Sec-Fetch-Site\`): a page could send those types to any address without asking.
- **Foreign pages.** A page of another origin changes nothing without having asked: also a POST or DELETE that has no body is 415 from it, unless it is declared as JSON, for which browsers ask first (and CORS decides), or its origin is named in \`http.cors_origins\`. Clients that are not pages need no header.
- **Size.** A body beyond \`http.body_limit\` (32 MiB) is 413, also when it comes in chunks without a declared length. JSON may be nested 100 levels deep and hold 1,049,600 numbers and 131,072 other values (names of fields included), else 400 at the first byte beyond; JSON in a text, as the arguments of an earlier tool call are, has the same depth. Lists have at most 16,384 elements (token ids 1,048,576, stop texts 256). When the bodies of all requests under way are larger than four of the largest together, a further large one is 503. A message of a WebSocket is bounded like a body.
- **CORS.** Any origin, method and header, unless \`http.cors_origins\` names origins. Then requests of pages of other origins are 403, WebSockets included; the daemon's own page may always call.
- **Host.** While the daemon listens on a loopback address, a foreign \`Host\` is 403 (see \`http.allowed_hosts\`).
- **Keys.** None by default. With \`api_keys\`, everything but \`/health\` asks for one as \`Authorization: Bearer …\` or \`x-api-key\`. The IPC socket asks for none: its file mode admits its owner alone.
- **Rate.** No limit by default. With \`http.rate_limit\`, 429 with \`Retry-After\` for each client address (of IPv6, each network of 64 bits). Requests are counted, on kept connections too, and so are the messages of a WebSocket, of which one too many is answered by an error frame; \`/health\` and the IPC socket are not counted.
- **Life.** While the daemon starts or drains, \`/health\` and everything that makes it work answer 503 with \`Retry-After\`; what only reads (status, metrics, lists, events, documentation) is served.
- **Names in paths** may hold a colon. A hub spec may be written as it is or encoded: \`/api/models/hf:owner/repo\` and \`/api/models/hf%3Aowner%2Frepo\` are the same.
- **Unknown fields** are ignored; known ones with a wrong type or range are 400, and the message begins with the field's path.
- **Fields are only ever added.** The version is that of the package and follows semantic versioning.

## IPC

The same API on a Unix socket (mode 0600; a named pipe on Windows), reported by \`/api/system/status\` as \`ipc://<path>\`:

    curl --unix-socket ~/.cache/daybreak/run/daybreak.sock http://localhost/status

One route exists there alone: \`POST /api/system/shutdown\` drains and ends the daemon.

## Pulling

With \`"stream": true\` a pull answers one line after the other: \`downloading\` with a progress from what was there at the start to 1.0, then \`verifying\`, then \`success\` with the model's name. While the hub does not deliver, \`downloading\` lines have a \`note\` that says why and when it is asked again. What fails at once has a status of its own; what fails later is a last line with \`error\`. A client that goes away pauses the download, and the next pull goes on from there.

## Default models

\`POST /api/defaults/<name>/use\` answers \`loading\` at once. The names are aliases, so \`model\` in the answer is the model's name from then on. It is then downloaded when it is not on disk, loaded, and made the daemon's default. \`GET /api/events\` reports the end, also when it fails; \`GET /api/models\` shows the state meanwhile.

## Events

\`GET /api/events\` is a server-sent stream of what happens from now on: \`model-downloaded\`, \`model-loaded\`, \`model-unloaded\`, \`model-failed\`, \`model-deleted\`, \`model-created\`, \`engine-restarted\`. The event's name is its type; its data is one JSON object with \`type\`, \`model\`, \`time\` and what belongs to the type. A comment line every 15 seconds keeps the connection open.

    curl -N http://127.0.0.1:8080/api/events

## Tokens

\`POST /tokenize\` and \`POST /detokenize\` run llama.cpp's own tokenizer with the vocabulary of any loaded model, embedding models included, and have the shape of llama.cpp's server. They wait for no slot: the tokenizer runs between the steps of what is being generated. Up to 1 Mi characters, and as many tokens, at once. \`/detokenize\` joins the bytes of all tokens before it reads them as text; a vocabulary that begins every text with a blank gives that blank back.

They need Daybreak's own engine: with \`engine.kernels = "stock"\` they are 400 \`unsupported_feature\`. The same holds for token ids as the \`prompt\` of \`/v1/completions\`. A prompt reaches llama.cpp as text, so the daemon looks for the text of the ids, tokenizes it as a prompt, and goes on only when exactly those ids come back (a token that the vocabulary puts in front of every prompt may be given or left out). Ids that no text gives, such as half of a character, are 400.

\`POST /v1/messages/count_tokens\` and \`POST /v1/responses/input_tokens\` are exact too, with template, system, tools and pictures, on any engine: the prompt is begun and left at llama.cpp's first report, which names its length. They take a slot for that one step; a conversation that does not fit the context is refused with its count in the message.

## Chat over a WebSocket

\`/ws/chat\` carries any number of conversations at once. Each frame is one JSON object as text.

| the client sends | |
|---|---|
| \`{"type": "chat", "id": "a", "messages": […], …}\` | begins a chat; its other fields are those of \`POST /api/chat\` |
| \`{"type": "cancel", "id": "a"}\` | ends it; nothing happens when it has ended already |
| \`{"type": "ping"}\` | asks for a \`pong\`; an \`id\` comes back with it |

| the daemon sends | |
|---|---|
| \`start\` with \`model\` | the chat has a slot |
| \`delta\` and \`reasoning\` with \`content\` | pieces of the text and of the thinking |
| \`tool_call\` with \`tool_call\` | a whole call, as \`POST /api/chat\` shows it |
| \`done\` with the summary of \`POST /api/chat\` | the end; \`done_reason\` is \`cancelled\`, and the counts are missing, after a \`cancel\` |
| \`error\` with \`error\` | the end too; without an \`id\` when the frame had none |
| \`pong\` | |

All of them but \`pong\` have the chat's \`id\`, and each chat ends with one \`done\` or \`error\`. The id is free again then; a chat under an id that is in use is refused, and the first one goes on. A reader that is slow slows its chats down; closing the socket ends them.

## Health and status

\`/health\` is 200 \`{"status": "ok"}\` when the daemon serves, else 503 with \`starting\` or \`draining\`. \`/status\` is the short and \`/api/system/status\` the long report; \`memory_used_bytes\` counts the daemon and its engines, \`memory_total_bytes\` is the machine's memory or the container's limit.

\`/metrics\` has the metrics of the interface specification with the prefix \`service_\`, \`service_requests_waiting\` (for a slot) and \`service_engine_restarts_total\`. The gauges of a model are there while it is loaded.
`;

/** The text of docs/api.md. */
export function apiPage(): string {
  const routes = documentedDialects(describedServices()).flatMap((dialect) => dialect.routes);
  const rows = routes.map(
    (route) => `| ${route.method} | \`${openApiPath(route.path)}\` | ${route.summary} |`,
  );
  const bodies = routes.filter((route) => route.body !== undefined).map(bodySection);
  return `${PROSE}
## Routes

| method | path | purpose |
|---|---|---|
${rows.join("\n")}

## Request bodies

${bodies.join("\n")}`;
}

/** Enough to ask the dialects for their routes; none of them is called. */
function describedServices(): ManagementServices {
  const services: Partial<ManagementServices> = { config: configSchema.parse({}) };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- handlers, which need the rest, never run
  return services as ManagementServices;
}

function bodySection(route: Route): string {
  if (!route.body) return "";
  const rows = describedFields(route.body, "input")
    .flat()
    .map(({ name, type, required, description }) => {
      const cells = [`\`${name}\``, type, required ? "yes" : "no", description];
      return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
    });
  const heading = `### ${route.method} ${openApiPath(route.path)}`;
  return `${heading}\n\n| field | type | required | meaning |\n|---|---|---|---|\n${rows.join("\n")}\n`;
}
