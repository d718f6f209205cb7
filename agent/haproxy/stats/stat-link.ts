// One connection to one worker for what a reading asks for in portions: no other worker answers in between, and none of
// them costs a connection of its own.

import { Pipeline } from '../socket/pipeline.ts';
import { connectedTextSocket } from '../socket/text-socket.ts';
import { type ProcessInfo, readProcessInfo } from './process-info.ts';

export class StatLink {
  /** The worker at the other end, as it was when the connection began. */
  readonly info: ProcessInfo;
  readonly #pipeline: Pipeline;

  private constructor(pipeline: Pipeline, info: ProcessInfo) {
    this.#pipeline = pipeline;
    this.info = info;
  }

  /** `timeoutMs`: without a sign of life. Errors: RUNTIME_CONNECT, RUNTIME_CLOSED, RUNTIME_TIMEOUT, RUNTIME_REPLY. */
  static async open(adminSocket: string, timeoutMs: number): Promise<StatLink> {
    const pipeline = new Pipeline(await connectedTextSocket(adminSocket), '> ', timeoutMs);
    try {
      const [, info = ''] = await pipeline.send(['prompt', 'show info'], 'urgent');
      return new StatLink(pipeline, readProcessInfo(info));
    } catch (error) {
      pipeline.close();
      throw error;
    }
  }

  /** The answer to each line, without line feeds at its end; HAProxy works them out one right after the other. */
  async ask(lines: readonly string[]): Promise<readonly string[]> {
    const texts = await this.#pipeline.send(lines, 'urgent');
    return texts.map((text) => text.trimEnd());
  }

  close(): void {
    this.#pipeline.close();
  }
}
