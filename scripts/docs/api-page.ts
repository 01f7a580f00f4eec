import type { z } from "zod";
import { configSchema } from "../../src/config/schema.ts";
import { documentedApis } from "../../src/daemon/create-apis.ts";
import { connectQuery } from "../../src/api/management/page-routes.ts";
import type { ManagementServices } from "../../src/api/management/management-services.ts";
import { describedFields } from "./described-fields.ts";
import { openApiPath } from "../../src/http/route.ts";
import type { Route } from "../../src/http/route.ts";

const PROSE = `# The API

<!-- Made by scripts/docs/generate.ts; the prose is in scripts/docs/api-page.ts, the rest comes from the routes' own schemas. -->

A running daemon documents itself: \`/docs\` is an API reference with a console, \`/openapi.json\` an OpenAPI 3.1 document with every field.

Bodies are JSON. Streams are newline-delimited JSON (\`application/x-ndjson\`) on the daemon's own routes and server-sent events under \`/v1\`. See also [errors.md](errors.md) and [configuration.md](configuration.md).

## What applies to every route

- **Request id.** Every response has \`x-request-id\`. If the client sends one (up to 128 letters, digits and \`.:+/=@_-\`), it is kept. The log contains it too.
- **Content type.** The body must be declared as JSON, or the response is 415. So that \`curl -d '{…}'\` works without a header, curl's default type and a missing type are accepted as well, but not from web pages (requests with \`Origin\` or \`Sec-Fetch-Site\`), because a page may send those types to any address without a CORS preflight.
- **Pages of other origins** cannot change anything without a preflight: a POST or DELETE without a body is also 415 unless it is declared as JSON or its origin is listed in \`http.cors_origins\`. Clients that are not web pages need no header.
- **Size.** A body larger than \`http.body_limit\` (32 MiB) is 413, also when it is sent in chunks without a declared length. JSON may be nested 100 levels deep and contain 1,049,600 numbers and 131,072 other values (including field names); beyond that it is 400 at the first byte too many. JSON inside strings, such as the arguments of an earlier tool call, has the same depth limit. Lists have at most 16,384 elements (token ids 1,048,576, stop sequences 256). When the bodies of all current requests exceed four times the largest allowed body, further large ones are 503. WebSocket messages have the same limits as bodies.
- **CORS.** Any origin, method and header is allowed unless \`http.cors_origins\` lists origins. Then requests from pages of other origins are 403, WebSockets included; the daemon's own page is always allowed.
- **Host.** While the daemon listens on a loopback address, a foreign \`Host\` header is 403 (see \`http.allowed_hosts\`).
- **API keys.** None by default. With \`api_keys\`, every route except \`/health\` and the files of the page (\`/ui/\`, \`/browser/\`) requires one as \`Authorization: Bearer …\` or \`x-api-key\`. The IPC socket does not: only its owner may open it.
- **Rate limit.** None by default. With \`http.rate_limit\`, clients beyond it get 429 with \`Retry-After\`, counted by address (IPv6: by /64 network). Every request counts, also on a kept-alive connection, and so does every WebSocket message; a message too many is answered with an error frame. \`/health\` and the IPC socket are not counted.
- **Starting and draining.** Meanwhile \`/health\` and all routes that need a model answer 503 with \`Retry-After\`; routes that only read (status, metrics, lists, events, documentation) work.
- **Names in paths** may contain a colon. A hub spec may be written plainly or encoded: \`/api/models/hf:owner/repo\` and \`/api/models/hf%3Aowner%2Frepo\` are the same.
- **Unknown fields** are ignored. A known field with a wrong type or range is 400; the message begins with the field's path.
- **Compatibility.** Fields are only ever added. The API has the package's version, which follows semantic versioning.

## IPC

The same API is served on a Unix socket (mode 0600; a named pipe on Windows), which \`/api/system/status\` reports as \`ipc://<path>\`:

    curl --unix-socket ~/.cache/daybreak/run/daybreak.sock http://localhost/status

One route exists only there: \`POST /api/system/shutdown\` drains and stops the daemon.

## Pulling

With \`"stream": true\`, a pull answers line by line: \`downloading\` with a progress up to 1.0, then \`verifying\`, then \`success\` with the model's name. While the hub does not deliver, \`downloading\` lines have a \`note\` that says why and when Daybreak tries again. A failure before the first line has its own HTTP status, a later one is a last line with \`error\`. If the client disconnects, the download pauses, and the next pull resumes it.

## Default models

\`POST /api/defaults/<name>/use\` answers \`loading\` immediately; \`model\` in the response is the alias of the model. Daybreak then downloads it if necessary, loads it and makes it the default. \`GET /api/events\` reports success or failure; \`GET /api/models\` shows the state in the meantime.

## Events

\`GET /api/events\` is a stream of server-sent events, from the time of the request on: \`model-downloaded\`, \`model-loaded\`, \`model-unloaded\`, \`model-failed\`, \`model-deleted\`, \`model-created\`, \`engine-restarted\`. The event's name is its type; its data is a JSON object with \`type\`, \`model\`, \`time\` and fields specific to the type. A comment line every 15 seconds keeps the connection open.

    curl -N http://127.0.0.1:8080/api/events

## Tokens

\`POST /tokenize\` and \`POST /detokenize\` run llama.cpp's own tokenizer with the vocabulary of any loaded model, embedding models included, in the format of llama.cpp's server. They do not wait for a slot: the tokenizer runs between decoding steps. One request may have up to 1 Mi characters, or as many tokens. \`/detokenize\` concatenates the bytes of all tokens before it decodes them as text. If the vocabulary begins every text with a space, the result has that space.

Both need Daybreak's own engine: with \`engine.kernels = "stock"\` they are 400 \`unsupported_feature\`. The same applies to token ids as the \`prompt\` of \`/v1/completions\`. A prompt reaches llama.cpp as text, so the daemon finds the text of the ids, tokenizes it as a prompt, and continues only if exactly those ids come back (a token that the vocabulary puts in front of every prompt may be present or not). Ids that no text produces, such as half a character, are 400.

\`POST /v1/messages/count_tokens\` and \`POST /v1/responses/input_tokens\` are exact as well, with template, system prompt, tools and images, on any engine: the daemon starts the prompt, reads its length from llama.cpp's first report, and cancels it. This takes a slot for one step. If a conversation does not fit into the context, the error message contains its count.

## Where an answer ends

\`finish_reason\`, \`done_reason\`, \`stop_reason\` and \`incomplete_details\` have the values of their APIs. An answer that was cut off also has \`limited_by\` beside them: \`max_tokens\` of the request, \`num_predict\` of the model, the API's own \`default\` (512 in the native API, 16 in \`/v1/completions\`, none elsewhere), the \`context\`, which is full, or \`repetition\`.

With \`repetition_guard\`, an answer is stopped as soon as it runs in circles, in its reasoning and the arguments of calls as well: the same span of tokens at least four times and for 512 tokens, for 256 if it has up to four tokens (such as blanks that a grammar allows without end), for 4096 if it is numbers. Off by default; set by the request, \`PARAMETER repetition_guard\`, or \`models.repetition_guard\`. Such answers are logged and counted in \`service_repetitions_stopped_total\`.

\`GET /v1/models\` has the context of each model as \`context_length\`, \`max_context_length\` and \`max_model_len\`, the names by which clients look for it, and \`meta.n_ctx_train\`.

## Chat over a WebSocket

\`/ws/chat\` carries any number of conversations at once. Each frame is one JSON object as text.

| the client sends | |
|---|---|
| \`{"type": "chat", "id": "a", "messages": […], …}\` | starts a chat; its other fields are those of \`POST /api/chat\` |
| \`{"type": "cancel", "id": "a"}\` | ends it; has no effect if it has already ended |
| \`{"type": "ping"}\` | requests a \`pong\`, with the same \`id\` if there is one |

| the daemon sends | |
|---|---|
| \`start\` with \`model\` | the chat has a slot |
| \`delta\` and \`reasoning\` with \`content\` | pieces of the text and of the reasoning |
| \`tool_call\` with \`tool_call\` | a complete call, as in \`POST /api/chat\` |
| \`done\` with the summary of \`POST /api/chat\` | the end; after a \`cancel\`, \`done_reason\` is \`cancelled\` and there are no counts |
| \`error\` with \`error\` | also the end; without an \`id\` if the frame had none |
| \`pong\` | |

All frames except \`pong\` have the chat's \`id\`, and each chat ends with one \`done\` or \`error\`, after which the id may be used again. A chat with an id that is in use is refused; the first one continues. A slow reader slows its chats down; closing the socket ends them.

## Health and status

\`/health\` is 200 \`{"status": "ok"}\` when the daemon is ready, otherwise 503 with \`starting\` or \`draining\`. \`/status\` is a short report, \`/api/system/status\` a detailed one. \`memory_used_bytes\` is the memory of the daemon and its engines, \`memory_total_bytes\` the machine's memory or the container's limit.

\`/metrics\` has the daemon's Prometheus metrics, all with the prefix \`service_\`; [observability.md](observability.md) lists them, and tells of the log and of traces. Tokens are counted as they come. A model's gauges exist while it is loaded.

\`GET /api/system/activity\` tells what has happened of late: the last requests with their model, tokens, time to first token and speed; the last events; the last records of the log, of which \`?level=warn\` chooses some. \`?after=\` with the \`next\` of an answer gives what came since. It is all kept in memory, within fixed limits, without bodies, keys or headers.
`;

/** The text of docs/api.md. */
export function apiPage(): string {
  const routes = documentedApis(describedServices()).flatMap((api) => api.routes);
  const rows = routes.map(
    (route) => `| ${route.method} | \`${openApiPath(route.path)}\` | ${route.summary} |`,
  );
  const queries = routes.flatMap(queryRows);
  const bodies = routes.filter((route) => route.body !== undefined).map(bodySection);
  return `${PROSE}
## Routes

| method | path | purpose |
|---|---|---|
${rows.join("\n")}

## Query parameters

| route | parameter | type | required | meaning |
|---|---|---|---|---|
${queries.join("\n")}

## Request bodies

${bodies.join("\n")}`;
}

/** Services that suffice to list the routes of all APIs; none of them is called. */
function describedServices(): ManagementServices {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- handlers, which need the rest, never run
  return { config: configSchema.parse({}), batches: {} } as ManagementServices;
}

/** Query rows of a route. Those that the page adds to the addresses of its own files are left out. */
function queryRows({ method, path, query }: Route): string[] {
  return query && query !== connectQuery
    ? fieldRows(query).map((row) => `| \`${method} ${openApiPath(path)}\` ${row}`)
    : [];
}

function fieldRows(schema: z.ZodType): string[] {
  return describedFields(schema)
    .flat()
    .map(({ name, type, required, description }) => {
      const cells = [`\`${name}\``, type, required ? "yes" : "no", description];
      return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
    });
}

function bodySection(route: Route): string {
  if (!route.body) return "";
  const rows = fieldRows(route.body);
  const heading = `### ${route.method} ${openApiPath(route.path)}`;
  return `${heading}\n\n| field | type | required | meaning |\n|---|---|---|---|\n${rows.join("\n")}\n`;
}
