// Reads the metrics of agents again and again and finds counters that went back while their series lasted. A new process, a
// series that was away in between, a member, which may have left and come back in between, and a listener that went to the
// other engine, and perhaps came back since, may begin again, as docs/metrics.md says.

import type { SoakHost } from './soak-changes.ts';

const COUNTER = /^((?!headgate_member_)\w+_total)(\{.*\})? (\S+)$/gm;
/** Only HAProxy counts them. */
const OF_HAPROXY = 'headgate_listener_sessions_total';

export class CounterWatch {
  looks = 0;
  readonly backward: string[] = [];
  /** Host → series, with its process and engine → value, of the last look. */
  readonly #last = new Map<string, ReadonlyMap<string, number>>();

  /**
   * An agent that is being restarted is not read. `changing`: the Service whose listener may change its engine, or have done so
   * since the last look.
   */
  async look({ name, agent }: SoakHost, changing?: string): Promise<void> {
    const answer = await agent.get('/metrics').catch(() => undefined);
    if (answer?.status !== 200) return;
    this.see(name, agent.pid, answer.text, changing);
  }

  see(host: string, pid: number, text: string, changing?: string): void {
    this.looks++;
    const counters = [...text.matchAll(COUNTER)];
    const served = new Set(
      counters.flatMap(([, metric, labels = '']) => (metric === OF_HAPROXY ? [labels] : [])),
    );
    const before = this.#last.get(host);
    const now = new Map<string, number>();
    for (const [, metric = '', labels = '', text] of counters) {
      const isOfHaproxy = metric.startsWith('headgate_listener_') && served.has(labels);
      const [key, value] = [`${pid} ${metric}${labels}${isOfHaproxy ? ' by HAProxy' : ''}`, Number(text)];
      const was = before?.get(key) ?? 0;
      const mayBegin = changing !== undefined && labels.includes(`service="${changing}"`);
      if (value < was && !mayBegin) this.backward.push(`${host} ${key}: ${was} → ${value}`);
      now.set(key, value);
    }
    this.#last.set(host, now);
  }
}
