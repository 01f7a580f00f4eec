// oxlint-disable unicorn/no-thenable -- the name of a keyword
/** Schemas as agents and repositories have them, by what they are. */
const text = { type: "string" } as const;
const count = { type: "integer", minimum: 0 } as const;
const flag = { type: "boolean" } as const;
const names = { type: "array", items: text } as const;
const object = (
  properties: object,
  required: readonly string[] = Object.keys(properties),
  more: object = {},
): object => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
  ...more,
});
const open = (properties: object, required: readonly string[] = [], more: object = {}): object => ({
  type: "object",
  properties,
  required,
  ...more,
});
const version = { type: "string", pattern: "^\\d+\\.\\d+\\.\\d+(-[0-9A-Za-z.-]+)?$" };
const slug = { type: "string", pattern: "^(?!.*--)[a-z0-9][a-z0-9-]{0,38}$" };
const path = { type: "string", pattern: "^(?!/)(?!.*\\.\\.)[\\w./-]+$", minLength: 1, maxLength: 120 };

export const REAL_SCHEMAS: Readonly<Record<string, unknown>> = {
  "read a file": object({ path, offset: count, limit: { type: "integer", minimum: 1, maximum: 2000 } }, [
    "path",
  ]),
  "write a file": object({ file_path: path, content: text }),
  "edit a file": object(
    { path, old: { type: "string", minLength: 1 }, new: text, all: { ...flag, default: false } },
    ["path", "old", "new"],
  ),
  "several edits": object({
    path,
    edits: { type: "array", minItems: 1, items: object({ old: text, new: text }) },
  }),
  "run a command": open(
    {
      command: { type: "string", minLength: 1 },
      timeout: { type: "number", maximum: 600_000 },
      background: flag,
    },
    ["command"],
  ),
  "list a folder": open({ path: text, ignore: names }, ["path"]),
  "find files": object({ pattern: text, path: { type: ["string", "null"] } }, ["pattern", "path"]),
  grep: open(
    {
      pattern: text,
      output_mode: { enum: ["content", "files", "count"] },
      "-A": count,
      "-B": count,
      "-i": flag,
      glob: text,
    },
    ["pattern"],
  ),
  "fetch a page": object({ url: { type: "string", format: "uri" }, prompt: text }),
  "search the web": open(
    {
      query: { type: "string", minLength: 2 },
      allowed_domains: { type: "array", items: { type: "string", format: "hostname" } },
    },
    ["query"],
  ),
  "a todo list": object({
    todos: {
      type: "array",
      items: object({
        content: { type: "string", minLength: 1 },
        status: { enum: ["pending", "in_progress", "completed"] },
        id: text,
      }),
    },
  }),
  "start an agent": object({
    description: text,
    prompt: text,
    subagent_type: { enum: ["general", "review", "test"] },
  }),
  "commit changes": open(
    { message: { type: "string", maxLength: 72, pattern: "^[A-Z]" }, files: { ...names, uniqueItems: true } },
    ["message"],
  ),
  "create a branch": object({ name: slug }),
  "open an issue": open(
    {
      title: text,
      labels: { type: "array", maxItems: 10, items: slug },
      assignee: { anyOf: [text, { type: "null" }] },
    },
    ["title"],
  ),
  "query a database": open(
    {
      sql: { type: "string", pattern: "^(?:select|SELECT)\\s[\\s\\S]+$" },
      limit: { type: "integer", exclusiveMinimum: 0, maximum: 100 },
    },
    ["sql"],
  ),
  weather: object({ location: text, unit: { type: "string", enum: ["celsius", "fahrenheit"] } }, [
    "location",
  ]),
  "weather, Gemini style": {
    type: "OBJECT",
    properties: { location: { type: "STRING" }, days: { type: "INTEGER", nullable: true } },
    required: ["location"],
  },
  "send mail": object({
    to: { type: "array", minItems: 1, items: { type: "string", format: "email" } },
    subject: text,
    body: text,
  }),
  "an appointment": open(
    {
      title: text,
      start: { type: "string", format: "date-time" },
      end: { type: "string", format: "date-time" },
      all_day: flag,
    },
    ["title", "start"],
  ),
  "a date range": object({
    from: { type: "string", format: "date" },
    to: { type: "string", format: "date" },
  }),
  coordinates: object({
    latitude: { type: "number", minimum: -90, maximum: 90 },
    longitude: { type: "number", minimum: -180, maximum: 180 },
  }),
  color: { type: "string", pattern: "^#(?:[0-9a-fA-F]{3}){1,2}$" },
  price: object({
    amount: { type: "number", minimum: 0, maximum: 10_000, multipleOf: 0.01 },
    currency: { type: "string", pattern: "^[A-Z]{3}$" },
  }),
  rating: { type: "integer", minimum: 1, maximum: 5 },
  "even percent": { type: "integer", minimum: 0, maximum: 100, multipleOf: 2 },
  "an identifier": object({ id: { type: "string", format: "uuid" } }),
  "an address": open(
    {
      street: text,
      city: text,
      zip: { type: "string", pattern: "^\\d{5}(-\\d{4})?$" },
      country: { const: "US" },
    },
    ["street", "city", "zip"],
  ),
  "a classification": object({
    label: { enum: ["spam", "ham", "unsure"] },
    confidence: { type: "number", minimum: 0, maximum: 1 },
  }),
  "steps of mathematics": object({
    steps: { type: "array", items: object({ explanation: text, output: text }) },
    final_answer: text,
  }),
  "an interface of elements": {
    $defs: {
      element: object({
        type: { enum: ["div", "button", "field"] },
        label: text,
        children: { type: "array", items: { $ref: "#/$defs/element" } },
      }),
    },
    $ref: "#/$defs/element",
  },
  "a linked list": {
    ...object({ value: { type: "number" }, next: { anyOf: [{ $ref: "#" }, { type: "null" }] } }),
  },
  "an expression": {
    definitions: {
      expression: {
        oneOf: [
          { type: "number" },
          object({
            op: { enum: ["+", "-"] },
            left: { $ref: "#/definitions/expression" },
            right: { $ref: "#/definitions/expression" },
          }),
        ],
      },
    },
    $ref: "#/definitions/expression",
  },
  "shapes by kind": {
    oneOf: [
      object({ kind: { const: "circle" }, radius: { type: "number", exclusiveMinimum: 0 } }),
      object({ kind: { const: "square" }, side: { type: "number", exclusiveMinimum: 0 } }),
    ],
  },
  "events by type": open({ at: { type: "string", format: "date-time" } }, ["at", "type"], {
    oneOf: [
      { properties: { type: { const: "push" }, ref: text }, required: ["ref"] },
      { properties: { type: { const: "tag" }, tag: version }, required: ["tag"] },
    ],
  }),
  "a payment": open(
    { method: { enum: ["card", "cash"] }, card: { type: "string", pattern: "^\\d{16}$" } },
    ["method"],
    {
      if: { properties: { method: { const: "card" } } },
      then: { required: ["card"] },
      else: { not: { required: ["card"] } },
    },
  ),
  "a login": open({ user: text, mail: { type: "string", format: "email" }, token: text }, [], {
    anyOf: [{ required: ["user"] }, { required: ["mail"] }],
  }),
  "dependent fields": open({ card: text, billing: text, csv: text }, [], {
    dependentRequired: { card: ["billing", "csv"] },
  }),
  "an animal, by inheritance": {
    allOf: [open({ name: text }, ["name"]), open({ lives: { type: "integer", maximum: 9 } }, ["lives"])],
    unevaluatedProperties: false,
  },
  "headers of a request": {
    type: "object",
    patternProperties: { "^x-[a-z-]+$": text },
    additionalProperties: false,
  },
  "environment variables": {
    type: "object",
    propertyNames: { pattern: "^[A-Z_][A-Z0-9_]*$" },
    additionalProperties: text,
    maxProperties: 20,
  },
  "a map of numbers": { type: "object", additionalProperties: { type: "number" } },
  "package.json": open(
    {
      name: {
        type: "string",
        pattern: "^(?:(?:@(?:[a-z0-9-*~][a-z0-9-*._~]*)?/[a-z0-9-._~])|[a-z0-9-~])[a-z0-9-._~]*$",
        maxLength: 214,
        minLength: 1,
      },
      version,
      private: { anyOf: [flag, { enum: ["false", "true"] }] },
      type: { enum: ["commonjs", "module"], default: "commonjs" },
      scripts: { type: "object", additionalProperties: text },
      dependencies: { $ref: "#/definitions/dependency" },
      devDependencies: { $ref: "#/definitions/dependency" },
      files: names,
      author: { oneOf: [text, open({ name: text, email: { type: "string", format: "email" } }, ["name"])] },
      engines: { type: "object", properties: { node: text }, additionalProperties: text },
    },
    ["name", "version"],
    {
      definitions: { dependency: { type: "object", additionalProperties: text } },
      patternProperties: { "^_": { type: "string" } },
    },
  ),
  "tsconfig.json": open({
    compilerOptions: open({
      target: {
        anyOf: [
          { enum: ["es2022", "esnext"] },
          { pattern: "^([Ee][Ss]([356]|(20(1[5-9]|2[0-4]))|[Nn][Ee][Xx][Tt]))$" },
        ],
        type: "string",
      },
      strict: flag,
      lib: { type: "array", uniqueItems: true, items: { enum: ["dom", "es2022", "webworker"] } },
    }),
    include: { ...names, uniqueItems: true },
    extends: { oneOf: [text, names] },
  }),
  "a workflow of GitHub": open(
    {
      name: text,
      on: {
        oneOf: [
          { enum: ["push", "pull_request"] },
          { type: "array", items: { enum: ["push", "pull_request"] }, minItems: 1 },
          { type: "object" },
        ],
      },
      jobs: {
        type: "object",
        patternProperties: {
          "^[_a-zA-Z][a-zA-Z0-9_-]*$": open(
            {
              "runs-on": text,
              needs: { oneOf: [text, names] },
              "timeout-minutes": { type: "number" },
              steps: {
                type: "array",
                items: {
                  allOf: [
                    { oneOf: [open({ uses: text }, ["uses"]), open({ run: text }, ["run"])] },
                    open({ name: text }),
                  ],
                },
              },
            },
            ["runs-on"],
          ),
        },
        minProperties: 1,
        additionalProperties: false,
      },
    },
    ["on", "jobs"],
  ),
  "a parameter of OpenAPI": open(
    {
      name: text,
      in: { enum: ["path", "query", "header", "cookie"] },
      required: flag,
      schema: { type: "object" },
    },
    ["name", "in"],
    {
      if: { properties: { in: { const: "path" } }, required: ["in"] },
      then: { properties: { required: { const: true } }, required: ["required"] },
    },
  ),
  "a compose file": open(
    {
      services: {
        type: "object",
        additionalProperties: open(
          {
            image: text,
            ports: {
              type: "array",
              items: {
                anyOf: [
                  { type: "integer", minimum: 1, maximum: 65_535 },
                  { type: "string", pattern: "^\\d+:\\d+$" },
                ],
              },
            },
            restart: { enum: ["no", "always", "on-failure"] },
          },
          ["image"],
        ),
      },
    },
    ["services"],
  ),
  "a lint configuration": open({
    rules: {
      type: "object",
      additionalProperties: {
        oneOf: [
          { enum: ["off", "warn", "error"] },
          { type: "integer", minimum: 0, maximum: 2 },
          { type: "array", prefixItems: [{ enum: ["off", "warn", "error"] }], minItems: 1 },
        ],
      },
    },
  }),
  "a theme": {
    type: "object",
    patternProperties: { "^--[a-z-]+$": { type: "string", pattern: "^#[0-9a-f]{6}$" } },
    additionalProperties: false,
    minProperties: 1,
  },
  "GeoJSON point": object({
    type: { const: "Point" },
    coordinates: {
      type: "array",
      prefixItems: [{ type: "number" }, { type: "number" }],
      items: false,
      minItems: 2,
    },
  }),
  "a draft 7 tuple": {
    type: "array",
    items: [{ type: "string" }, { type: "integer" }],
    additionalItems: false,
    minItems: 2,
  },
  "a matrix": {
    type: "array",
    minItems: 3,
    maxItems: 3,
    items: { type: "array", minItems: 3, maxItems: 3, items: { type: "number" } },
  },
  "tags without repetition": {
    type: "array",
    items: { enum: ["a", "b", "c"] },
    uniqueItems: true,
    minItems: 1,
  },
  "a list with an admin": {
    type: "array",
    items: open({ name: text, role: { enum: ["admin", "user"] } }, ["name", "role"]),
    contains: { properties: { role: { const: "admin" } } },
    maxItems: 6,
  },
  "an answer or a question": { anyOf: [object({ answer: text }), object({ question: text })] },
  "an error or a result": object({
    result: {
      anyOf: [
        object({ ok: { const: true }, value: text }),
        object({ ok: { const: false }, error: { type: "string", minLength: 1 } }),
      ],
    },
  }),
  "anything but nothing": { not: { type: "null" } },
  "a name that is not taken": {
    type: "string",
    not: { enum: ["root", "admin"] },
    pattern: "^[a-z]+$",
    maxLength: 12,
  },
  "a number that is not zero": { type: "integer", not: { const: 0 }, minimum: -5, maximum: 5 },
  "empty properties, as agents send them": { type: "object", properties: {}, required: [] },
  "no parameters at all": { type: "object", properties: null, required: null },
  "an old nullable": {
    type: "object",
    properties: { note: { type: "string", nullable: true } },
    required: ["note"],
  },
};
