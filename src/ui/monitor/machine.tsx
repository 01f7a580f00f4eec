import type { JSX } from "preact";
import { formatBytes, formatDuration, formatInteger, formatNumber } from "../../json/quantities.ts";
import {
  describeModel,
  type Engine,
  type FactList,
  type FleetMachine,
  type FleetModel,
  machineFacts,
  type Status,
} from "./monitor-api.ts";
import { engines, fleet, gpuFailures, samples, speeds, status } from "./monitor-state.ts";

/** The GPU, sandbox and memory of the machine, with their problems. */
export function Machine(): JSX.Element {
  const now = status.value;
  return (
    <section aria-labelledby="machine-title">
      <h2 id="machine-title">Machine</h2>
      <div id="machine">
        {now && [
          <Gpu key="gpu" {...now} />,
          <Sandbox key="sandbox" {...now} />,
          <Daemon key="daemon" {...now} />,
        ]}
      </div>
    </section>
  );
}

function Gpu({ gpu }: Status): JSX.Element {
  const { losses, abandonments } = gpuFailures.value;
  // A machine without a GPU has no problem.
  const hasProblem = losses > 0 || abandonments > 0 || (!gpu.available && gpu.adapters.length > 0);
  return (
    <section id="gpu" class={hasProblem ? "off" : ""}>
      <h3>GPU</h3>
      <p>
        <strong>{gpu.available ? (gpu.adapter ?? "available") : "none is used"}</strong>
      </p>
      {gpu.problem !== undefined && <p>{gpu.problem}</p>}
      {gpu.adapters.length > 0 && (
        <ul>
          {gpu.adapters.map(({ name, backend, usable, problem, memory_bytes: memory }) => (
            <li key={`${name} ${backend}`}>
              {name} ({backend}){memory !== undefined && `, ${formatBytes(memory)}`}:{" "}
              {usable ? "usable" : problem}
            </li>
          ))}
        </ul>
      )}
      {losses > 0 && <p class="failed">Engines that ended on the GPU: {formatInteger(losses)}</p>}
      {abandonments > 0 && (
        <p class="failed">Models that run on the CPU because the GPU failed: {formatInteger(abandonments)}</p>
      )}
    </section>
  );
}

function Sandbox({ sandbox }: Status): JSX.Element {
  const isOn = sandbox.wall !== "none" && sandbox.wall !== "unknown";
  return (
    <section id="sandbox" class={isOn ? "" : "off"}>
      <h3>Sandbox around engines</h3>
      <p>
        <strong>{sandbox.wall === "unknown" ? "not tried yet" : sandbox.wall}</strong> (configured:{" "}
        {sandbox.mode})
      </p>
      {sandbox.parts.length > 0 && <p>{sandbox.parts.join(", ")}</p>}
      {sandbox.problem !== undefined && <p>{sandbox.problem}</p>}
    </section>
  );
}

function Daemon({ stats, version, llama_cpp: llamaCpp, uptime_secs: uptime, kernels }: Status): JSX.Element {
  const { memory_used_bytes: used, memory_total_bytes: total } = stats;
  return (
    <section id="daemon">
      <h3>Daemon</h3>
      <p>
        <strong>Daybreak {version}</strong>, llama.cpp {llamaCpp}, {kernels === "daybreak" ? "own" : "stock"}{" "}
        kernels
      </p>
      <p>
        Running for {formatDuration(uptime * 1000)}: {formatInteger(stats.requests_total)} requests,{" "}
        {formatInteger(stats.tokens_generated)} tokens generated.
      </p>
      <p>
        <label>
          Memory: {formatBytes(used)} of {formatBytes(total)} <meter min={0} max={total} value={used} />
        </label>
      </p>
    </section>
  );
}

/** Lists the models in memory. */
export function Engines(): JSX.Element {
  // The time of the last sample makes the idle times advance.
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
            <Facts facts={engineFacts(engine, now)} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Facts({ facts }: { readonly facts: FactList }): JSX.Element {
  return (
    <dl>
      {facts.map(([name, fact]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{fact}</dd>
        </div>
      ))}
    </dl>
  );
}

function engineFacts(engine: Engine, now: number): FactList {
  const { memory_bytes: memory, gpu_memory_bytes: gpuMemory = 0, slots, gpu_layers: layers } = engine;
  const speed = speeds.value.get(engine.alias) ?? 0;
  const busy = engine.active_requests;
  const used =
    slots === undefined
      ? formatInteger(busy)
      : `${formatInteger(Math.min(busy, slots))} of ${formatInteger(slots)}`;
  const waiting = slots === undefined ? 0 : Math.max(0, busy - slots);
  return [
    ["Requests", waiting > 0 ? `${used}, ${formatInteger(waiting)} waiting` : used],
    ["Memory", memory === undefined ? "…" : formatBytes(memory)],
    ["Context", `${formatInteger(engine.context_size)} tokens`],
    ["Layers on the GPU", gpuMemory > 0 ? `${layers}, ${formatBytes(gpuMemory)}` : formatInteger(layers)],
    ["Last answer", speed > 0 ? `${formatNumber(speed)} tokens/s` : "none yet"],
    ["Idle", describeIdle(engine, now)],
  ];
}

function describeIdle(engine: Engine, now: number): string {
  const { active_requests: active, last_used_at: used, expires_at: end } = engine;
  if (engine.state !== "loaded") return "no";
  if (active > 0) return "no, it answers";
  const idle = used === undefined ? "yes" : `for ${formatDuration(Math.max(0, now - Date.parse(used)))}`;
  return end === undefined
    ? idle
    : `${idle}; unloaded in ${formatDuration(Math.max(0, Date.parse(end) - now))}`;
}

/** The machines of the fleet, if the daemon has joined one. */
export function FleetView(): JSX.Element | null {
  const now = fleet.value;
  if (!now?.joined) return null;
  return (
    <section aria-labelledby="fleet-title">
      <h2 id="fleet-title">Fleet</h2>
      {!now.connected && (
        <p class="failed">The NATS server is not reachable: this machine is working alone until it is.</p>
      )}
      <ul id="fleet">
        {now.machines.map((machine) => (
          <FleetMember key={machine.id} {...machine} />
        ))}
      </ul>
    </section>
  );
}

function FleetMember(machine: FleetMachine): JSX.Element {
  const { name, self, state, models } = machine;
  const stored = models.filter(({ loaded }) => !loaded);
  return (
    <li class={state}>
      <h3>
        {name} <small>{self ? `this machine, ${state}` : state}</small>
      </h3>
      <Facts facts={machineFacts(machine)} />
      <FleetModels models={models.filter(({ loaded }) => loaded)} />
      {stored.length > 0 && (
        <details>
          <summary>On disk only: {formatInteger(stored.length)}</summary>
          <FleetModels models={stored} />
        </details>
      )}
    </li>
  );
}

function FleetModels({ models }: { readonly models: readonly FleetModel[] }): JSX.Element {
  if (models.length === 0) return <p class="models">No model is in memory.</p>;
  return (
    <ul class="models">
      {models.map((model) => (
        <li key={model.alias}>
          <strong>{model.alias}</strong> {describeModel(model)}
        </li>
      ))}
    </ul>
  );
}
