import type { GoExpression } from "./go-expression.ts";
import type { GoNode } from "./go-template.ts";

/** Whether the nodes, or nested ones, set variables. */
export function setsVariables(nodes: readonly GoNode[]): boolean {
  return nodes.some((node) => node.kind === "assign" || childrenOf(node).some(setsVariables));
}

/** The names of all fields that the nodes print or test. */
export function fieldsOf(nodes: readonly GoNode[]): readonly string[] {
  return nodes.flatMap((node) =>
    expressionsOf(node).flatMap(namesIn).concat(childrenOf(node).flatMap(fieldsOf)),
  );
}

/** The nodes up to and including the first that prints .Response; in alternatives, each up to its own. */
export function cutBehindResponse(nodes: readonly GoNode[]): readonly GoNode[] {
  return cut(nodes).nodes;
}

interface Cut {
  readonly nodes: readonly GoNode[];
  readonly isCut: boolean;
}

function cut(nodes: readonly GoNode[]): Cut {
  const kept: GoNode[] = [];
  for (const node of nodes) {
    const shows = node.kind === "print" && namesIn(node.value).includes("Response");
    const inner = cutWithin(node);
    kept.push(inner.node);
    if (shows || inner.isCut) return { nodes: kept, isCut: true };
  }
  return { nodes: kept, isCut: false };
}

function cutWithin(node: GoNode): { node: GoNode; isCut: boolean } {
  if (node.kind === "if") {
    const cuts = node.branches.map(({ body }) => cut(body));
    const otherwise = cut(node.otherwise);
    const branches = node.branches.map(({ condition, position, body }, index) => ({
      condition,
      position,
      body: cuts[index]?.nodes ?? body,
    }));
    return {
      node: { ...node, branches, otherwise: otherwise.nodes },
      isCut: otherwise.isCut || cuts.some(({ isCut }) => isCut),
    };
  }
  if (node.kind === "with") {
    const [body, otherwise] = [cut(node.body), cut(node.otherwise)];
    return {
      node: { ...node, body: body.nodes, otherwise: otherwise.nodes },
      isCut: body.isCut || otherwise.isCut,
    };
  }
  return { node, isCut: false };
}

function childrenOf(node: GoNode): readonly (readonly GoNode[])[] {
  switch (node.kind) {
    case "if":
      return [...node.branches.map(({ body }) => body), node.otherwise];
    case "range":
      return [node.body];
    case "with":
      return [node.body, node.otherwise];
    default:
      return [];
  }
}

function expressionsOf(node: GoNode): readonly GoExpression[] {
  switch (node.kind) {
    case "text":
      return [];
    case "if":
      return node.branches.map(({ condition }) => condition);
    case "range":
      return [node.list];
    default:
      return [node.value];
  }
}

function namesIn(expression: GoExpression): readonly string[] {
  if (expression.kind === "call") return expression.arguments.flatMap(namesIn);
  if (expression.kind !== "access") return [];
  const within = expression.base.kind === "value" ? namesIn(expression.base.value) : [];
  return [...within, ...expression.path];
}
