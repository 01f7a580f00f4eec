import { parseSync } from "rolldown/utils";

/** Words with a meaning of their own in older code, and what to write instead. */
const BANNED: Readonly<Record<string, string>> = {
  room: "module, layer, view, or context budget",
  rooms: "modules, layers, or views",
  desk: "service",
  wish: "request or preference",
  wishes: "requests or preferences",
  wished: "requested",
  told: "reported or notified",
  stray: "unhandled",
  strays: "unhandled errors",
  patience: "retry budget or deadline",
  beat: "heartbeat",
  beats: "heartbeats",
  whoever: "the caller, the client, or the user",
  dialect: "API",
  dialects: "APIs",
  wall: "sandbox",
  walls: "sandbox",
  elsewhere: "remote, on another machine, or off-thread",
};

const BANNED_PHRASES: readonly (readonly [RegExp, string])[] = [
  [/\b(?:gives?|giving|gave) way\b/i, "preemption"],
  [/\blast net\b/i, "handler of unhandled errors"],
];

/** A doc comment begins with a noun or a verb, never with one of these. */
const BAD_START = /^\*\s*(?:Of|What|Whether|It)\b/;

interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

/** Visits every node below one, itself included. */
function visit(node: Node, see: (node: Node) => void): void {
  see(node);
  for (const value of Object.values(node)) {
    if (Array.isArray(value)) {
      for (const each of value) if (isNode(each)) visit(each, see);
    } else if (isNode(value)) visit(value, see);
  }
}

/** Title of a test, where the node is a call that declares one. */
function titleOf({ type, callee, arguments: args }: Node): string | undefined {
  if (type !== "CallExpression" || !isNode(callee) || !Array.isArray(args)) return undefined;
  let called: Node = callee;
  while (called.type === "CallExpression" || called.type === "MemberExpression") {
    const inner = called["callee"] ?? called["object"];
    if (!isNode(inner)) return undefined;
    called = inner;
  }
  const first: unknown = args[0];
  if (!["test", "describe", "it"].includes(String(called["name"])) || !isNode(first)) return undefined;
  return typeof first["value"] === "string" ? first["value"] : undefined;
}

/** Words of an identifier, in lower case: "MAX_RateLimits" has "max", "rate" and "limits". */
function wordsOf(name: string): string[] {
  return [...name.matchAll(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g)].map(([word]) => word.toLowerCase());
}

function problemsOfText(text: string): string[] {
  const words = text
    // Quoted names are of wires, disks and other programs.
    .replaceAll(/`[^`]*`|"[^"]*"|wall[ -](?:clock|time)/g, " ")
    .toLowerCase()
    .match(/[a-z]+/g);
  const found = [...new Set(words)].filter((word) => Object.hasOwn(BANNED, word));
  return [
    ...found.map((word) => `"${word}": write ${BANNED[word]}`),
    ...BANNED_PHRASES.filter(([phrase]) => phrase.test(text)).map(
      ([phrase, instead]) => `${phrase.source}: write ${instead}`,
    ),
  ];
}

/**
 * Finds words that only insiders understand in comments, identifiers and titles of tests.
 * @returns a line for each, with the line number
 */
export function wordingProblems(file: string, source: string): string[] {
  const { program, comments } = parseSync(file, source);
  const found = new Map<string, number>();
  const report = (problem: string, start: number): void => {
    const line = source.slice(0, start).split("\n").length;
    if (!found.has(problem)) found.set(problem, line);
  };
  for (const { value, start } of comments) {
    if (BAD_START.test(value)) report(`a comment begins "${value.slice(1, 30).trim()}"`, start);
    for (const problem of problemsOfText(value)) report(`a comment has ${problem}`, start);
  }
  visit({ ...program }, (node) => {
    const title = titleOf(node);
    const start = Number(node["start"]);
    if (title !== undefined) {
      for (const problem of problemsOfText(title)) report(`a title has ${problem}`, start);
    }
    if (node.type !== "Identifier" && node.type !== "PrivateIdentifier") return;
    const name = String(node["name"]);
    // The field of /api/system/status keeps its name.
    if (name === "wall") return;
    for (const word of wordsOf(name).filter((each) => Object.hasOwn(BANNED, each))) {
      report(`the name ${name} has "${word}": write ${BANNED[word]}`, start);
    }
  });
  return [...found].map(([problem, line]) => `${file}:${line}: ${problem}`);
}
