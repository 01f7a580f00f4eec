import type { Config } from "../config/schema.ts";
import type { CachedFiles, HubPeers } from "../models/hub/cache/cached-files.ts";
import { FileFetcher } from "./files/file-fetcher.ts";
import { serveFiles } from "./files/file-server.ts";
import type { SharedRecords } from "../api/services.ts";
import type { FleetView } from "../api/management/fleet-routes.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { FollowRequest } from "../http/middleware/request-log.ts";
import type { FollowWork } from "../inference/request-accounting.ts";
import type { Inference } from "../inference/inference.ts";
import type { MakeOffThread } from "../inference/schema-compiler.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Models } from "../models/models.ts";
import { BatchModels } from "./batches/batch-models.ts";
import { FleetBatches, type FleetBatchesOptions } from "./batches/fleet-batches.ts";
import { JetStreamStore } from "./batches/jetstream-store.ts";
import { SharingLog } from "./jetstream/streams.ts";
import type { Offer } from "./call-schemas.ts";
import { Dispatch } from "./dispatch.ts";
import { findIn, isSame } from "./members.ts";
import { JetStreamRecords } from "./jetstream-records.ts";
import { FleetConnection } from "./fleet-connection.ts";
import { FleetInference } from "./fleet-inference.ts";
import { fleetReport, withFleetModels } from "./fleet-models.ts";
import { Presence } from "./presence.ts";
import { RemoteCalls } from "./remote-calls.ts";
import { SelfDescription, type SelfDescriptionOptions } from "./self-description.ts";
import { ServedCalls } from "./served-calls.ts";
import { SpeedMeter } from "./speed-meter.ts";

export interface FleetOptions extends Omit<
  SelfDescriptionOptions,
  "speeds" | "config" | "models" | "inference"
> {
  readonly config: Config;
  /** Of this machine alone. */
  readonly models: Models;
  /** Of this machine alone. */
  readonly inference: () => Inference;
  readonly metrics: Metrics;
  /** What this machine has from the hub. */
  readonly files: CachedFiles;
  /** Remembers what this machine works on for others. */
  readonly followRequest: FollowRequest;
  /** Whether what is asked for now can wait for everything else. */
  readonly isBackground: () => boolean;
  /** Told of all work of this machine and of what it has others do. */
  readonly followWork: FollowWork;
}

/** What this machine has for batches. */
export type OwnBatches = Pick<FleetBatchesOptions, "own" | "formats" | "events" | "onLine">;

/** A daemon's part in a fleet. */
export interface Fleet extends FleetView {
  readonly connection: FleetConnection;
  readonly presence: Presence;
  /** Brings files of the hub from other machines; undefined: this machine takes and gives none. */
  readonly peers: HubPeers | undefined;
  /** What all machines can read. */
  readonly records: SharedRecords;
  /** Told of this machine's own work. */
  readonly followWork: FollowWork;
  /** The models of all machines. */
  readonly models: Models;
  /** The files and batches of all machines, beside those of this one. */
  batches(options: OwnBatches): FleetBatches;
  /** The inference of all machines, around that of this one. */
  around(local: Inference, makeElsewhere: MakeOffThread): Inference;
  /** Says that this machine leaves, and closes the connection. */
  close(): Promise<void>;
}

/**
 * Joins the fleet of the configuration, in the background: without a NATS server the daemon works alone until there is one.
 * @throws ServiceError invalid_parameter when a file that the configuration names cannot be read
 */
export function startFleet(options: FleetOptions): Fleet {
  const { config, models, inference, logger, metrics, followWork, followRequest, life } = options;
  const connection = new FleetConnection(config.fleet, logger);
  const speeds = new SpeedMeter();
  const self = new SelfDescription({ ...options, speeds });
  const selfId = self.card.id;
  const presence = new Presence({ connection, logger, self });
  self.onChange = () => presence.beat();
  const calls = new RemoteCalls(connection, selfId);
  const dispatch = new Dispatch({
    self,
    presence,
    models,
    queueSize: config.models.queue_size,
    onWaiting: (change) => metrics.requestsWaiting(change),
  });
  speeds.onEnd = () => dispatch.wake();
  const refusal = (offer: Offer): ServiceError | undefined => {
    if (life.state !== "ready") return new ServiceError("shutting_down", "The machine takes no requests.");
    const model = findIn([self], offer.name)?.model;
    if (!model || !isSame(model, offer)) {
      return new ServiceError("model_not_found", "The machine has no such model.");
    }
    // Its own requests come first, or they would wait forever.
    return offer.needsSlot && dispatch.isAwaited(model.alias)
      ? new ServiceError("overloaded", "The machine is busy.")
      : undefined;
  };
  const served = new ServedCalls({ connection, selfId, inference, followRequest, refusal });
  const sharing = new SharingLog(connection, logger);
  const shares = config.fleet.share_files;
  if (shares) serveFiles({ connection, files: options.files, logger, id: selfId });
  return {
    connection,
    presence,
    peers: shares ? new FileFetcher({ connection, presence }) : undefined,
    records: new JetStreamRecords(connection, config.fleet.prefix, logger, sharing),
    followWork: speeds.follow(followWork),
    models: withFleetModels(
      models,
      () => presence.machines,
      (name) => presence.missing(name),
    ),
    joined: connection.joined,
    batches: (own) =>
      new FleetBatches({
        ...own,
        config,
        logger,
        place: new JetStreamStore(connection, config.fleet.prefix, logger, sharing),
        selfId,
        models: new BatchModels({ self, presence, models }),
      }),
    around: (local, makeElsewhere) =>
      new FleetInference({
        local,
        makeElsewhere,
        dispatch,
        calls,
        metrics,
        followWork,
        config,
        logger,
        isBackground: options.isBackground,
      }),
    report: () => ({
      ...fleetReport(connection, self, presence.machines),
      sharingProblem: connection.isConnected ? sharing.problem : undefined,
    }),
    async close() {
      self.leave();
      presence.beat();
      presence.close();
      dispatch.close();
      served.close();
      calls.close();
      await connection.close();
    },
  };
}
