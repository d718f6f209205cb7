// How an engine that forwards traffic starts and ends: it outlives the agent, which adopts it.

/** `S`: the settings of the dataplane. */
export interface Lifecycle<S> {
  /** Begins the part of start() that does not need the load balancers; start() reports its errors. */
  prepare(): void;
  /** Adopts or starts the engine; retries in the background. */
  start(): Promise<void>;
  configure(settings: S): void;
  /** Disconnects from the engine, which continues, and writes what is not on disk yet. */
  close(): Promise<void>;
  /** After close(): stops an engine that was started here. Connections have `graceMs` to end. */
  stop(graceMs: number): Promise<void>;
  /** The processes of its engine that an agent has started, and that continue after close(). */
  processes(): Promise<readonly number[]>;
}
