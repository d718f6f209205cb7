// Which listeners an engine takes connections for before and beyond the plans of this agent, so that none is without an engine when
// the agent starts, or while a listener goes to another engine.

export interface Continuity {
  /** True if the listener takes connections, and no reload or load of rules that is under way ends that. */
  continues(listener: string): boolean;
  /** The listeners that an engine from before this agent serves; undefined if the engine does not answer. */
  runningListeners(): Promise<readonly string[] | undefined>;
  /** The listeners for which its engine takes connections by the files of an agent before this one. */
  listenersBefore(): Promise<readonly string[]>;
}
