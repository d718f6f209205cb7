// The names by which one HAProxy worker has backends, if they are not the names of the agent: of pools in spare backends.

export class BackendNames {
  readonly #inWorker = new Map<string, string>();
  readonly #inAgent = new Map<string, string>();

  use(backend: string, inWorker: string): void {
    this.#inWorker.set(backend, inWorker);
    this.#inAgent.set(inWorker, backend);
  }

  inWorker(backend: string): string {
    return this.#inWorker.get(backend) ?? backend;
  }

  inAgent(backend: string): string {
    return this.#inAgent.get(backend) ?? backend;
  }

  /** A question with the worker's names. */
  asked(question: string): string {
    return this.#inWorker.size === 0
      ? question
      : question
          .split(' ')
          .map((word) => this.inWorker(word))
          .join(' ');
  }
}
