import { z } from "zod";
import { type JsonSchema, jsonSchemaSchema, type ToolDefinition } from "../../engine/protocol/generation.ts";

const TEXT = { type: "string" };
const WHOLE = { type: "integer" };
const POINT = { type: "array", items: WHOLE, minItems: 2, maxItems: 2 };
const LINES = { ...POINT, description: "First and last line, from 1; -1 is the end of the file." };

const object = (properties: JsonSchema, required: readonly string[]): JsonSchema => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});

/** The text editor since this version cannot undo, and reads the text to insert from a field of its own. */
const VERSION_WITHOUT_UNDO = 20250429;
const VERSION_WITH_SCROLL = 20250124;
const VERSION_WITH_ZOOM = 20251124;

const FIRST_ACTIONS = [
  "key",
  "type",
  "mouse_move",
  "left_click",
  "left_click_drag",
  "right_click",
  "middle_click",
  "double_click",
  "screenshot",
  "cursor_position",
];

/**
 * The tools of the messages API that its clients run, by family. The API's own models know them without a schema; others
 * need one, with the fields that clients read.
 */
const FAMILIES: Readonly<
  Record<string, (version: number, tool: Readonly<Record<string, unknown>>) => ClientTool>
> = {
  bash: () => ({
    description: "Runs a command in a bash shell that stays open between calls.",
    parameters: object(
      {
        command: { ...TEXT, description: "The command." },
        restart: { type: "boolean", description: "True: start the shell anew, without a command." },
      },
      [],
    ),
  }),
  text_editor: (version) => ({
    description:
      "Views and edits files. view shows a file or lists a folder, create writes a file, str_replace replaces text that " +
      "occurs exactly once, insert adds text after a line.",
    parameters: object(
      {
        command: {
          enum: [
            "view",
            "create",
            "str_replace",
            "insert",
            ...(version < VERSION_WITHOUT_UNDO ? ["undo_edit"] : []),
          ],
        },
        path: { ...TEXT, description: "The file or folder." },
        view_range: LINES,
        file_text: { ...TEXT, description: "For create: the content." },
        old_str: { ...TEXT, description: "For str_replace: the text to replace." },
        new_str: {
          ...TEXT,
          description:
            version < VERSION_WITHOUT_UNDO
              ? "For str_replace and insert: the new text."
              : "For str_replace: the new text.",
        },
        insert_line: { ...WHOLE, description: "For insert: the line to insert after; 0 is the beginning." },
        ...(version >= VERSION_WITHOUT_UNDO && {
          insert_text: { ...TEXT, description: "For insert: the text." },
        }),
      },
      ["command", "path"],
    ),
  }),
  memory: () => ({
    description:
      "Keeps notes in files below /memories, which last beyond this conversation. view shows a file or lists a folder.",
    parameters: object(
      {
        command: { enum: ["view", "create", "str_replace", "insert", "delete", "rename"] },
        path: { ...TEXT, description: "The file or folder, for all commands but rename." },
        view_range: LINES,
        file_text: { ...TEXT, description: "For create: the content." },
        old_str: { ...TEXT, description: "For str_replace: the text to replace." },
        new_str: { ...TEXT, description: "For str_replace: the new text." },
        insert_line: { ...WHOLE, description: "For insert: the line to insert after; 0 is the beginning." },
        insert_text: { ...TEXT, description: "For insert: the text." },
        old_path: { ...TEXT, description: "For rename: the present path." },
        new_path: { ...TEXT, description: "For rename: the new path." },
      },
      ["command"],
    ),
  }),
  computer: (version, { display_width_px: width, display_height_px: height }) => ({
    description:
      "Uses mouse and keyboard of a computer and takes screenshots." +
      (typeof width === "number" && typeof height === "number"
        ? ` Its display has ${width} by ${height} pixels.`
        : ""),
    parameters: object(
      {
        action: {
          enum: [
            ...FIRST_ACTIONS,
            ...(version >= VERSION_WITH_SCROLL
              ? ["left_mouse_down", "left_mouse_up", "triple_click", "scroll", "hold_key", "wait"]
              : []),
            ...(version >= VERSION_WITH_ZOOM ? ["zoom"] : []),
          ],
        },
        coordinate: { ...POINT, description: "x and y in pixels." },
        text: { ...TEXT, description: "The text to type, or the keys to press." },
        ...(version >= VERSION_WITH_SCROLL && {
          start_coordinate: { ...POINT, description: "Where a drag begins." },
          scroll_direction: { enum: ["up", "down", "left", "right"] },
          scroll_amount: { ...WHOLE, description: "Clicks of the wheel." },
          duration: { type: "number", description: "Seconds, for hold_key and wait." },
        }),
        ...(version >= VERSION_WITH_ZOOM && {
          region: {
            ...POINT,
            minItems: 4,
            maxItems: 4,
            description: "For zoom: left, top, right and bottom.",
          },
        }),
      },
      ["action"],
    ),
  }),
};

/** Fields such as cache_control, defer_loading, input_examples and eager_input_streaming are ignored. */
export const toolSchema = z
  .looseObject({
    type: z
      .string()
      .refine((type) => type === "custom" || clientTool(type, {}) !== undefined, {
        error: ({ input }) =>
          `is not supported: "${String(input).slice(0, 60)}" is not a tool that the client runs as one function; ` +
          "leave it out, or send a tool of your own with an input_schema",
      })
      .nullish()
      .describe("custom, or a tool that the client runs: bash_…, text_editor_…, memory_… or computer_…."),
    name: z.string().min(1),
    description: z.string().nullish(),
    strict: z
      .boolean()
      .nullish()
      .describe("Refuse a schema that cannot be enforced, instead of enforcing what can be."),
    input_schema: jsonSchemaSchema.optional().describe("JSON Schema of the arguments, for custom tools."),
  })
  .refine(({ type, input_schema: schema }) => (type != null && type !== "custom") || schema !== undefined, {
    path: ["input_schema"],
    error: "is missing",
  });
type Tool = z.output<typeof toolSchema>;

/** What the model is told of a tool. */
export function toToolDefinition(tool: Tool): ToolDefinition {
  const { type, name, description, strict, input_schema: parameters } = tool;
  const known = type == null ? undefined : clientTool(type, tool);
  return {
    name,
    description: description ?? known?.description,
    parameters: parameters ?? known?.parameters,
    ...(strict != null && { strict }),
  };
}

interface ClientTool {
  readonly description: string;
  readonly parameters: JsonSchema;
}

/**
 * What the model has to know of a tool that the API names by a type such as `bash_20250124`; undefined for other types.
 * @param tool its fields
 */
function clientTool(type: string, tool: Readonly<Record<string, unknown>>): ClientTool | undefined {
  const [, family = "", version] = /^([a-z_]+)_(\d{8})$/.exec(type) ?? [];
  return Object.hasOwn(FAMILIES, family) ? FAMILIES[family]?.(Number(version), tool) : undefined;
}
