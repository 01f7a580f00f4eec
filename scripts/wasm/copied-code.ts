import type { Instruction } from "./instructions.ts";
import type { BarrierCopy, BuildFacts } from "./print-facts.ts";
import type { StockModule } from "./stock-module.ts";

const [LOOP, BR_IF, END, I32_EQ] = [0x03, 0x0d, 0x0b, 0x46];
const [GET, SET, TEE, I64_LOAD, I64_CONST, CALL] = [0x20, 0x21, 0x22, 0x29, 0x42, 0x10];
const ATOMIC_LOAD = (0xfe << 16) | 0x10;

const WAIT = [LOOP, GET, ATOMIC_LOAD, GET, I32_EQ, BR_IF, END];
const TAKE_GRAPH = [TEE, I64_LOAD, SET];
const STAGE_TENSOR = [GET, GET, CALL, GET, GET, I64_CONST, GET, CALL];

type Layout = Pick<BuildFacts, "functions" | "offsets">;

/** Functions that wait for a barrier in a loop of their own, with the locals that this loop uses. */
export function findBarrierCopies(stock: StockModule, { functions, offsets }: Layout): BarrierCopy[] {
  const passed = offsets["ggml_threadpool.n_barrier_passed"]?.at;
  const { importedFunctions, bodies } = stock.module;
  const copies = Array.from(bodies, (_, at) => at + importedFunctions)
    .filter((index) => index !== functions.ggml_barrier)
    .flatMap((index) => {
      const code = stock.code(index);
      const loops = placesOf(code, WAIT).filter((at) => code[at + 2]!.number === passed);
      return loops.map((at) => ({ index, pool: code[at + 1]!.number, passed: code[at + 3]!.number }));
    });
  const names = new Map(Object.entries(functions).map(([name, index]) => [index, name]));
  const alike = Map.groupBy(copies, (copy) => `${copy.index} ${copy.pool} ${copy.passed}`);
  return [...alike.values()].map((group) => {
    const { index, pool, passed: number } = group[0]!;
    return {
      function: names.get(index) ?? stock.names[index] ?? `function ${index}`,
      pool,
      passed: number,
      times: group.length,
    };
  });
}

/** Where ggml_graph_compute_thread takes its graph from the thread pool; undefined when it is not there just once. */
export function findGraphLocals(
  stock: StockModule,
  { functions, offsets }: Layout,
): BuildFacts["graphLocals"] | undefined {
  const index = functions.ggml_graph_compute_thread;
  if (index === undefined) return undefined;
  const code = stock.code(index);
  const [place, ...others] = placesOf(code, TAKE_GRAPH).filter(
    (at) => code[at + 1]!.number === offsets["ggml_threadpool.cgraph"]?.at,
  );
  if (place === undefined || others.length > 0) return undefined;
  return { pool: code[place]!.number, graph: code[place + 2]!.number };
}

/** Where llama_model_loader::load_all_data reads a tensor and sets it; undefined when it is not there just once. */
export function findStagingLocals(
  stock: StockModule,
  { functions }: Pick<Layout, "functions">,
): BuildFacts["stagingLocals"] | undefined {
  const index = functions["llama_model_loader::load_all_data"];
  if (index === undefined) return undefined;
  const code = stock.code(index);
  const [place, ...others] = placesOf(code, STAGE_TENSOR).filter(
    (at) =>
      code[at + 2]!.number === functions["llama_file::read_raw"] &&
      code[at + 7]!.number === functions["ggml_backend_tensor_set"],
  );
  if (place === undefined || others.length > 0) return undefined;
  const local = (at: number): number => code[place + at]!.number;
  return { data: local(0), size: local(1), tensor: local(3) };
}

function placesOf(code: readonly Instruction[], opcodes: readonly number[]): number[] {
  return [...code.keys()].filter((at) => opcodes.every((opcode, next) => code[at + next]?.opcode === opcode));
}
