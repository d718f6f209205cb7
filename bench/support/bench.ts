// Builds the parameters of a benchmark from the variables BENCH_SCALE and HAPROXY.

import type { Bench } from './row.ts';

export function benchOf(env: NodeJS.ProcessEnv, report: Bench['report'], measured: Bench['measured']): Bench {
  const scale = Number(env.BENCH_SCALE ?? 1);
  return {
    scaled: (count, least = 1) => Math.max(least, Math.round(count * scale)),
    haproxy: env.HAPROXY ?? 'haproxy',
    report,
    measured,
  };
}
