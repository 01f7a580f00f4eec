import { type GgufFile, type GgufTensor, type TensorType, u32 } from "./gguf-writer.ts";
import { tinyLlama } from "./tiny-models.ts";

const EXPERTS = 4;
const EXPERTS_USED = 2;
const EMBEDDING = 256;
const FEED_FORWARD = 256;
/** Large enough that a position's two best experts are far from the others, whatever rounding does. */
const ROUTER_DEVIATION = 1;

/**
 * A llama model with random weights whose feed-forward parts are mixtures of four experts, two of them used.
 * @param weights type of the matrices of all but the second block, and of that
 */
export function tinyMixture([weights, second]: readonly [TensorType, TensorType]): GgufFile {
  const { metadata, tensors } = tinyLlama({ embedding: EMBEDDING, feedForward: FEED_FORWARD, weights });
  return {
    metadata: {
      ...metadata,
      "llama.expert_count": u32(EXPERTS),
      "llama.expert_used_count": u32(EXPERTS_USED),
    },
    tensors: tensors.map((tensor) => ofSecondType(tensor, second)).flatMap(toExperts),
  };
}

/** A matrix of the second block gets that block's type. */
function ofSecondType(tensor: GgufTensor, type: TensorType): GgufTensor {
  const isMatrix = tensor.shape.length > 1;
  return isMatrix && tensor.name.startsWith("blk.1.") ? { ...tensor, type } : tensor;
}

function toExperts(tensor: GgufTensor): GgufTensor[] {
  const [, block, part] = /^(blk\.\d+)\.ffn_(gate|up|down)\.weight$/.exec(tensor.name) ?? [];
  if (part === undefined) return [tensor];
  const experts = { ...tensor, name: `${block}.ffn_${part}_exps.weight`, shape: [...tensor.shape, EXPERTS] };
  if (part !== "gate") return [experts];
  const router: GgufTensor = {
    name: `${block}.ffn_gate_inp.weight`,
    shape: [EMBEDDING, EXPERTS],
    type: "F32",
    data: { random: ROUTER_DEVIATION },
  };
  return [router, experts];
}
