import { z } from "zod";
import { optional } from "../../http/input/common-fields.ts";
import { type JsonSchema, jsonSchemaSchema, type ToolDefinition } from "../../engine/protocol/generation.ts";
import { toolDefinition } from "../chat-input.ts";
import { strictField } from "../wire/generation-fields.ts";

const STRING = { type: "string" };
const INTEGER = { type: "integer" };
const POINT = { type: "array", items: INTEGER, minItems: 2, maxItems: 2 };
const LINE_RANGE = { ...POINT, description: "First and last line, from 1; -1 is the end of the file." };

const objectSchema = (properties: JsonSchema, required: readonly string[]): JsonSchema => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});

/** Text editor version that dropped undo_edit, and that has the inserted text in insert_text instead of new_str. */
const VERSION_WITHOUT_UNDO = 20250429;
const VERSION_WITH_SCROLL = 20250124;
const VERSION_WITH_ZOOM = 20251124;

const BASE_ACTIONS = [
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
 * Client-side tools of the messages API, by family. Anthropic's models know them without a schema; other models need
 * one, with the fields that clients read.
 */
const TOOL_FAMILIES: Readonly<
  Record<string, (version: number, tool: Readonly<Record<string, unknown>>) => ClientTool>
> = {
  bash: () => ({
    description: "Runs a command in a bash shell that stays open between calls.",
    parameters: objectSchema(
      {
        command: { ...STRING, description: "The command." },
        restart: { type: "boolean", description: "True: start the shell anew, without a command." },
      },
      [],
    ),
  }),
  text_editor: (version) => ({
    description:
      "Views and edits files. view shows a file or lists a folder, create writes a file, str_replace replaces text that " +
      "occurs exactly once, insert adds text after a line.",
    parameters: objectSchema(
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
        path: { ...STRING, description: "The file or folder." },
        view_range: LINE_RANGE,
        file_text: { ...STRING, description: "For create: the content." },
        old_str: { ...STRING, description: "For str_replace: the text to replace." },
        new_str: {
          ...STRING,
          description:
            version < VERSION_WITHOUT_UNDO
              ? "For str_replace and insert: the new text."
              : "For str_replace: the new text.",
        },
        insert_line: { ...INTEGER, description: "For insert: the line to insert after; 0 is the beginning." },
        ...(version >= VERSION_WITHOUT_UNDO && {
          insert_text: { ...STRING, description: "For insert: the text." },
        }),
      },
      ["command", "path"],
    ),
  }),
  memory: () => ({
    description:
      "Keeps notes in files below /memories, which last beyond this conversation. view shows a file or lists a folder.",
    parameters: objectSchema(
      {
        command: { enum: ["view", "create", "str_replace", "insert", "delete", "rename"] },
        path: { ...STRING, description: "The file or folder, for all commands but rename." },
        view_range: LINE_RANGE,
        file_text: { ...STRING, description: "For create: the content." },
        old_str: { ...STRING, description: "For str_replace: the text to replace." },
        new_str: { ...STRING, description: "For str_replace: the new text." },
        insert_line: { ...INTEGER, description: "For insert: the line to insert after; 0 is the beginning." },
        insert_text: { ...STRING, description: "For insert: the text." },
        old_path: { ...STRING, description: "For rename: the present path." },
        new_path: { ...STRING, description: "For rename: the new path." },
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
    parameters: objectSchema(
      {
        action: {
          enum: [
            ...BASE_ACTIONS,
            ...(version >= VERSION_WITH_SCROLL
              ? ["left_mouse_down", "left_mouse_up", "triple_click", "scroll", "hold_key", "wait"]
              : []),
            ...(version >= VERSION_WITH_ZOOM ? ["zoom"] : []),
          ],
        },
        coordinate: { ...POINT, description: "x and y in pixels." },
        text: { ...STRING, description: "The text to type, or the keys to press." },
        ...(version >= VERSION_WITH_SCROLL && {
          start_coordinate: { ...POINT, description: "Where a drag begins." },
          scroll_direction: { enum: ["up", "down", "left", "right"] },
          scroll_amount: { ...INTEGER, description: "Clicks of the wheel." },
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

/** Tool of a request. Fields such as cache_control, defer_loading and input_examples are ignored. */
export const toolSchema = z
  .looseObject({
    type: optional(
      z.string().refine((type) => type === "custom" || clientTool(type, {}) !== undefined, {
        error: ({ input }) =>
          `is not supported: "${String(input).slice(0, 60)}" is not a client-side tool with a single function; ` +
          "leave it out, or send a custom tool with an input_schema",
      }),
      "custom, or a client-side tool: bash_…, text_editor_…, memory_… or computer_….",
    ),
    name: z.string().min(1),
    description: z.string().nullish(),
    strict: strictField,
    input_schema: jsonSchemaSchema.optional().describe("JSON Schema of the arguments, for custom tools."),
  })
  .refine(({ type, input_schema: schema }) => (type != null && type !== "custom") || schema !== undefined, {
    path: ["input_schema"],
    error: "is missing",
  });
type Tool = z.output<typeof toolSchema>;

/** Converts a tool to the function definition that the model gets. */
export function toToolDefinition(tool: Tool): ToolDefinition {
  const { type, name, description, strict, input_schema: parameters } = tool;
  const clientSide = type == null ? undefined : clientTool(type, tool);
  return toolDefinition({
    name,
    description: description ?? clientSide?.description,
    parameters: parameters ?? clientSide?.parameters,
    strict,
  });
}

interface ClientTool {
  readonly description: string;
  readonly parameters: JsonSchema;
}

/**
 * Returns description and parameters of a client-side tool with a type such as `bash_20250124`; undefined for other
 * types.
 * @param tool fields of the tool
 */
function clientTool(type: string, tool: Readonly<Record<string, unknown>>): ClientTool | undefined {
  const [, family = "", version] = /^([a-z_]+)_(\d{8})$/.exec(type) ?? [];
  return Object.hasOwn(TOOL_FAMILIES, family) ? TOOL_FAMILIES[family]?.(Number(version), tool) : undefined;
}
