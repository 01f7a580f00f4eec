import type { GoNode } from "./go-template.ts";
import {
  hasObjects,
  isKeyed,
  toJinja,
  toPrinted,
  type GoScope,
  type JinjaValue,
  literal,
  output,
  statement,
} from "./go-scope.ts";

/** Namespace for the template's variables, because a loop may set a variable from outside the loop. */
export const VARIABLES = "variables";

type Range = Extract<GoNode, { kind: "range" }>;

/**
 * Translates the nodes of a Go template.
 * @throws TemplateProblem
 */
export function nodesToJinja(nodes: readonly GoNode[], scope: GoScope): string {
  return new Translator().translate(nodes, scope);
}

class Translator {
  /** Loops so far; each has its own names. */
  #loops = 0;

  translate(nodes: readonly GoNode[], scope: GoScope): string {
    let variables = scope.variables;
    let jinja = "";
    for (const node of nodes) {
      const inner = { ...scope, variables };
      if (node.kind === "assign") {
        const value = toJinja(node.value, inner, node.position);
        const code = `${VARIABLES}.${node.name}`;
        jinja += statement(`set ${code} = ${value.code}`);
        variables = new Map([...variables, [node.name, { ...value, code }]]);
      } else jinja += this.#translateNode(node, inner);
    }
    return jinja;
  }

  #translateNode(node: Exclude<GoNode, { kind: "assign" }>, scope: GoScope): string {
    switch (node.kind) {
      case "text":
        return output(literal(node.text));
      case "print":
        return output(toPrinted(toJinja(node.value, scope, node.position)));
      case "if": {
        const branches = node.branches.map(({ condition, body, position }, index) => {
          const word = index === 0 ? "if" : "elif";
          return (
            statement(`${word} ${toJinja(condition, scope, position).code}`) + this.translate(body, scope)
          );
        });
        return branches.join("") + this.#otherwise(node.otherwise, scope) + statement("endif");
      }
      case "with": {
        const dot = toJinja(node.value, scope, node.position);
        return (
          statement(`if ${dot.code}`) +
          this.translate(node.body, { ...scope, dot }) +
          this.#otherwise(node.otherwise, scope) +
          statement("endif")
        );
      }
      default:
        return this.#translateRange(node, scope);
    }
  }

  #otherwise(nodes: readonly GoNode[], scope: GoScope): string {
    return nodes.length === 0 ? "" : statement("else") + this.translate(nodes, scope);
  }

  #translateRange({ list, index, item, body, position }: Range, scope: GoScope): string {
    const number = ++this.#loops;
    const dot: JinjaValue = { code: `item${number}`, prints: hasObjects(list) ? "json" : "text" };
    const place: JinjaValue = { code: `index${number}`, prints: "plain" };
    const variables = new Map(scope.variables);
    if (index !== undefined) variables.set(index, place);
    if (item !== undefined) variables.set(item, dot);
    const { code } = toJinja(list, scope, position);
    const inside = this.translate(body, { ...scope, dot, variables });
    if (isKeyed(list)) {
      return (
        statement(`for ${place.code}, ${dot.code} in (${code} or {}).items()`) + inside + statement("endfor")
      );
    }
    const counted = index === undefined ? "" : statement(`set ${place.code} = loop.index0`);
    return statement(`for ${dot.code} in (${code} or [])`) + counted + inside + statement("endfor");
  }
}
