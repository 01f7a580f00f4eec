import type { Config } from "../config/schema.ts";
import type { CachedFiles, HubPeers } from "../models/hub/cache/cached-files.ts";
import { FileFetcher } from "./files/file-fetcher.ts";
import { serveFiles } from "./files/file-server.ts";
import type { SharedRecords } from "../api/services.ts";
import type { FleetView } from "../api/management/management-services.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { FollowRequest } from "../http/middleware/request-log.ts";
import type { ObserveWork } from "../inference/request-accounting.ts";
import type { Inference } from "../inference/inference.ts";
import type { CompileOffThread } from "../inference/schema-compiler.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Models } from "../models/models.ts";
import { BatchModels } from "./batches/batch-models.ts";
import { FleetBatches, type FleetBatchesOptions } from "./batches/fleet-batches.ts";
import { JetStreamStore } from "./batches/jetstream-store.ts";
import { SharingLog } from "./jetstream/streams.ts";
import type { Offer } from "./call-schemas.ts";
import { Dispatch } from "./dispatch.ts";
import { findModel, isSameModel } from "./members.ts";
import { JetStreamRecords } from "./jetstream-records.ts";
import { FleetConnection } from "./fleet-connection.ts";
import { FleetInference } from "./fleet-inference.ts";
import { fleetReport, withFleetModels } from "./fleet-models.ts";
import { Presence } from "./presence.ts";
import { RemoteCalls } from "./remote-calls.ts";
import { SelfDescription, type SelfDescriptionOptions } from "./self-description.ts";
import { ServedCalls } from "./served-calls.ts";
import { SpeedMeter } from "./speed-meter.ts";

interface FleetOptions extends Omit<SelfDescriptionOptions, "speeds" | "config" | "models" | "inference"> {
  readonly config: Config;
  /** Models of this machine only. */
  readonly models: Models;
  /** Inference of this machine only. */
  readonly inference: () => Inference;
  readonly metrics: Metrics;
  /** This machine's files from the hub. */
  readonly files: CachedFiles;
  /** Records this machine's work for other machines. */
  readonly followRequest: FollowRequest;
  /** Returns true if the current request has low priority, as lines of batches have. */
  readonly isLowPriority: () => boolean;
  /** Observes the work of this machine and the work that it sends to others. */
  readonly followWork: ObserveWork;
}

/** This machine's parts of batches. */
type BatchParts = Pick<FleetBatchesOptions, "local" | "formats" | "events" | "onLine">;

/** A daemon's connection to its fleet. */
interface Fleet extends FleetView {
  /** Fetches files of the hub from other machines; undefined if file sharing is off. */
  readonly peers: HubPeers | undefined;
  /** Records that all machines can read. */
  readonly records: SharedRecords;
  /** Observes this machine's own work. */
  readonly followWork: ObserveWork;
  /** Models of all machines. */
  readonly models: Models;
  /** Returns the files and batches of all machines together with those of this one. */
  batches(options: BatchParts): FleetBatches;
  /** Wraps this machine's inference into that of all machines. */
  wrapInference(local: Inference, makeOffThread: CompileOffThread): Inference;
  /** Announces that this machine leaves, and closes the connection. */
  close(): Promise<void>;
}

/**
 * Joins the configured fleet without blocking: until a NATS server is reachable, the daemon works alone.
 * @throws ServiceError invalid_parameter if a file that the configuration names cannot be read
 */
export function startFleet(options: FleetOptions): Fleet {
  const { config, models, inference, logger, metrics, followWork, followRequest, life } = options;
  const connection = new FleetConnection(config.fleet, logger);
  const speeds = new SpeedMeter();
  const self = new SelfDescription({ ...options, speeds });
  const selfId = self.info.id;
  const presence = new Presence({ connection, logger, self });
  self.onChange = () => presence.sendHeartbeat();
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
    const model = findModel([self], offer.name)?.model;
    if (!model || !isSameModel(model, offer)) {
      return new ServiceError("model_not_found", "The machine has no such model.");
    }
    // This machine's own requests come first; otherwise they could wait forever.
    return offer.needsSlot && dispatch.hasWaiting(model.alias)
      ? new ServiceError("overloaded", "The machine is busy.")
      : undefined;
  };
  const served = new ServedCalls({ connection, selfId, inference, followRequest, refusal });
  const sharing = new SharingLog(connection, logger);
  const shares = config.fleet.share_files;
  if (shares) serveFiles({ connection, files: options.files, logger, id: selfId });
  return {
    peers: shares ? new FileFetcher({ connection, presence }) : undefined,
    records: new JetStreamRecords(connection, config.fleet.prefix, logger, sharing),
    followWork: speeds.follow(followWork),
    models: withFleetModels(
      models,
      () => presence.machines,
      (name) => presence.missingModelError(name),
    ),
    joined: connection.joined,
    batches: (own) =>
      new FleetBatches({
        ...own,
        config,
        logger,
        jetStream: new JetStreamStore(connection, config.fleet.prefix, logger, sharing),
        selfId,
        models: new BatchModels({ self, presence, models }),
      }),
    wrapInference: (local, makeOffThread) =>
      new FleetInference({
        local,
        makeOffThread,
        dispatch,
        calls,
        metrics,
        followWork,
        config,
        logger,
        isLowPriority: options.isLowPriority,
      }),
    report: () => {
      const { isConnected, problem } = connection;
      const sharingProblem = isConnected ? sharing.problem : undefined;
      return fleetReport({ isConnected, problem, sharingProblem }, self, presence.machines);
    },
    async close() {
      self.markGone();
      presence.sendHeartbeat();
      presence.close();
      dispatch.close();
      served.close();
      calls.close();
      await connection.close();
    },
  };
}
