import type { JSX } from "preact";
import { bytes, count, duration, short } from "./format.ts";
import { engines, samples, speeds } from "./monitor-state.ts";
import type { Engine } from "./monitor-api.ts";

/** Each model in memory. */
export function Engines(): JSX.Element {
  // Idle times go on while nothing else changes.
  const now = (samples.value.at(-1)?.time ?? 0) * 1000;
  return (
    <section aria-labelledby="engines-title">
      <h2 id="engines-title">Engines</h2>
      {engines.value.length === 0 && <p>No model is in memory.</p>}
      <ul id="engines">
        {engines.value.map((engine) => (
          <li key={engine.alias}>
            <h3>
              {engine.alias} {engine.state !== "loaded" && <small>{engine.state} …</small>}
            </h3>
            <dl>
              {factsOf(engine, now).map(([name, fact]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{fact}</dd>
                </div>
              ))}
            </dl>
          </li>
        ))}
      </ul>
    </section>
  );
}

function factsOf(engine: Engine, now: number): (readonly [name: string, fact: string])[] {
  const { memory_bytes: memory, gpu_memory_bytes: gpuMemory = 0, slots, gpu_layers: layers } = engine;
  const speed = speeds.value.get(engine.alias) ?? 0;
  const busy = engine.active_requests;
  const used = slots === undefined ? count(busy) : `${count(Math.min(busy, slots))} of ${count(slots)}`;
  const waiting = slots === undefined ? 0 : Math.max(0, busy - slots);
  return [
    ["Requests", waiting > 0 ? `${used}, ${count(waiting)} waiting` : used],
    ["Memory", memory === undefined ? "…" : bytes(memory)],
    ["Context", `${count(engine.context_size)} tokens`],
    ["Layers on the GPU", gpuMemory > 0 ? `${layers}, ${bytes(gpuMemory)}` : count(layers)],
    ["Last answer", speed > 0 ? `${short(speed)} tokens/s` : "none yet"],
    ["Idle", idleFor(engine, now)],
  ];
}

function idleFor(engine: Engine, now: number): string {
  const { active_requests: active, last_used_at: used, expires_at: end } = engine;
  if (engine.state !== "loaded") return "no";
  if (active > 0) return "no, it answers";
  const idle = used === undefined ? "yes" : `for ${duration(Math.max(0, now - Date.parse(used)))}`;
  return end === undefined ? idle : `${idle}; unloaded in ${duration(Math.max(0, Date.parse(end) - now))}`;
}
